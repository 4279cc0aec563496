# SPDX-License-Identifier: Apache-2.0
# A golden fine-tuning job again: by transformers with PyTorch's DDP or FSDP2, by ms-swift; or an adapter's loss in PEFT.
# For the checks of the part python: a second program computes the same job, so that a difference says which side errs.
# Of Sealift are in it only the reader of token files and, before DDP and FSDP2, what makes them of conversations.
# usage: golden_peer.py ddp|fsdp2 GOLDEN PREFIX OUT cpu|cuda [LOCAL_RANKS]      RANK … as from torchrun, without LOCAL_RANKS
#        golden_peer.py swift GOLDEN PREFIX OUT cpu|cuda     one process, or a rank of torchrun's
#        golden_peer.py adapter GOLDEN PREFIX OUT ADAPTER
# exit status 3, with the reason as the last line of standard error: this job or this environment cannot be compared
import importlib.metadata
import importlib.util
import json
import math
import os
import pathlib
import struct
import subprocess
import sys


def cannot(reason):
    print(reason, file=sys.stderr)
    sys.exit(3)


def read_tokens(path):
    """The sequences of a token file: (ids, whether each counts)."""
    data = path.read_bytes()
    magic, version, kind, width, _, _, examples, sequences, tokens, _ = struct.unpack_from("<8sIIIIQQQQQ", data)
    if (magic, version, kind in (2, 3)) != (b"SLTOKENS", 1, False):
        cannot(f"{path.name} is no token file of conversations")
    begins = struct.unpack_from(f"<{sequences + 1}Q", data, 160)
    mask = 160 + 8 * (sequences + 1)
    first = mask + ((tokens + 7) // 8 + 7) // 8 * 8
    ids = struct.unpack_from(f"<{tokens}{'H' if width == 2 else 'I'}", data, first)
    counts = [data[mask + i // 8] >> (i % 8) & 1 == 1 for i in range(tokens)]
    return [(ids[a:b], counts[a:b]) for a, b in zip(begins, begins[1:])]


class Job:
    """What of the golden run's settings is known here; every other setting makes it another job."""

    KNOWN = {"model": "", "dataset": "", "max_steps": "0", "learning_rate": "", "per_device_train_batch_size": "1",
             "gradient_accumulation_steps": "1", "train_dataloader_shuffle": "true", "tuner_type": "lora",
             "lora_dropout": "0.05", "warmup_steps": "0", "lr_scheduler_type": "cosine", "weight_decay": "0.1",
             "adam_beta1": "0.9", "adam_beta2": "0.95", "adam_epsilon": "1e-8", "max_grad_norm": "1",
             "precision": "fp32", "gradient_checkpointing": "false", "seed": "42", "data_seed": "42",
             "lora_rank": "8", "lora_alpha": "32", "logging_steps": "1", "target_modules": "all-linear",
             "adapters": "", "model_type": "", "template": ""}

    def __init__(self, golden, prefix):
        unknown = sorted(set(golden["settings"]) - set(self.KNOWN))
        if golden["verb"] != "sft" or unknown:
            cannot(f"the Python side does not know {golden['verb']} with {', '.join(unknown) or 'its settings'}")
        self.text = {**self.KNOWN, **golden["settings"]}
        if self.text["precision"] != "fp32":
            cannot(f"the Python side computes in fp32, the golden run in {self.text['precision']}")
        self.prefix, self.model, self.dataset = prefix, prefix / self.text["model"], prefix / self.text["dataset"]
        self.is_lines = self.dataset.suffix in (".json", ".jsonl")
        self.steps, self.rows = int(golden["steps"]), int(golden["rows"])

    def number(self, name):
        return float(self.text[name])

    def sequences(self, out):
        """As read_tokens, of conversations too: `out` says where their token file goes."""
        if not self.is_lines:
            return read_tokens(self.dataset)
        tokens = pathlib.Path(out).with_suffix(f".{os.getpid()}.tokens")
        if tokens.exists():
            return read_tokens(tokens)
        done = subprocess.run([self.prefix / "bin/sealift-train", "tokenize", "--python", sys.executable, "--model",
                               self.model, "--data", self.dataset, "--out", tokens], stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            sys.exit(f"sealift-train tokenize: {(done.stderr.strip() or 'it said nothing').splitlines()[-1]}")
        return read_tokens(tokens)


def loss_sum(model, ids, counts, device):
    """Minus the sum of the log-probabilities of the tokens that count; how many there are."""
    import torch

    labels = torch.tensor([[token if count else -100 for token, count in zip(ids, counts)]], device=device)
    logits = model(input_ids=torch.tensor([ids], device=device)).logits
    loss = torch.nn.functional.cross_entropy(logits[0, :-1].float(), labels[0, 1:], reduction="sum")
    return loss


def prepared(job, method, device):
    """The model, its optimizer and scheduler as transformers' Trainer makes them, and how its gradients are held back."""
    import torch
    import transformers
    from torch.distributed.fsdp import fully_shard
    from torch.nn.parallel import DistributedDataParallel

    model = transformers.AutoModelForCausalLM.from_pretrained(job.model, dtype=torch.float32).to(device)
    decays = set(transformers.Trainer.get_decay_parameter_names(None, model))
    if method == "fsdp2":
        for layer in model.model.layers:
            fully_shard(layer)
        fully_shard(model)
        outer, hold = model, lambda last: model.set_requires_gradient_sync(last)
    else:
        outer = DistributedDataParallel(model)
        hold = lambda last: setattr(outer, "require_backward_grad_sync", last)  # noqa: E731
    decay = job.number("weight_decay")
    groups = [{"params": [p for n, p in model.named_parameters() if (n in decays) == wanted], "weight_decay": value}
              for wanted, value in ((True, decay), (False, 0.0))]
    optimizer = torch.optim.AdamW(groups, lr=float(job.text["learning_rate"] or 1e-5),
                                  betas=(job.number("adam_beta1"), job.number("adam_beta2")),
                                  eps=job.number("adam_epsilon"))
    scheduler = transformers.get_scheduler(job.text["lr_scheduler_type"], optimizer, int(job.text["warmup_steps"]),
                                           job.steps)
    return model, outer, hold, optimizer, scheduler


def train(rank, world, job, method, device, sequences):
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    model, outer, hold, optimizer, scheduler = prepared(job, method, device)
    losses, norms = [], []
    for step in range(job.steps):
        rows = sequences[step * job.rows:(step + 1) * job.rows]
        tokens = sum(sum(counts[1:]) for _, counts in rows)
        mine = rows[rank::world]
        total = torch.zeros((), dtype=torch.float64, device=device)
        for number, (ids, counts) in enumerate(mine):
            hold(number + 1 == len(mine))
            loss = loss_sum(outer, ids, counts, device)
            (loss * world / tokens).backward()  # both methods take the mean over ranks
            total += loss.detach().double()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), job.number("max_grad_norm"))
        norm = norm.full_tensor() if hasattr(norm, "full_tensor") else norm
        dist.all_reduce(total)
        losses.append(total.item() / tokens)
        norms.append(norm.item())
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
    return losses, norms


def write_result(out, **values):
    """Numbers that are not finite as texts, which JSON has no numbers for: Python's own NaN is no JSON."""

    def number(value):
        return str(value) if isinstance(value, float) and not math.isfinite(value) else value

    said = {key: [number(each) for each in value] if isinstance(value, list) else number(value)
            for key, value in values.items()}
    pathlib.Path(out).write_text(json.dumps(said, allow_nan=False))


def rank_main(rank, world, meeting, arguments):
    import torch
    import torch.distributed as dist

    method, golden, prefix, out, kind = arguments
    job = Job(json.loads(pathlib.Path(golden).read_text()), pathlib.Path(prefix))
    cuda = kind == "cuda"
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    dist.init_process_group("nccl" if cuda else "gloo", init_method=meeting, rank=rank, world_size=world)
    losses, norms = train(rank, world, job, method, device, job.sequences(out))
    if rank == 0:
        versions = {"torch": torch.__version__, "transformers": __import__("transformers").__version__}
        write_result(out, ranks=world, losses=losses, norms=norms, versions=versions)
    dist.destroy_process_group()


def adapter(golden, prefix, out, folder):
    """The loss over all tokens that count, of the base alone and with the adapter."""
    import peft
    import torch
    import transformers

    job = Job(json.loads(pathlib.Path(golden).read_text()), pathlib.Path(prefix))
    sequences = job.sequences(out)

    def mean_loss(model):
        with torch.no_grad():
            total = sum(loss_sum(model, ids, counts, "cpu").double().item() for ids, counts in sequences)
        return total / sum(sum(counts[1:]) for _, counts in sequences)

    base = transformers.AutoModelForCausalLM.from_pretrained(job.model, dtype=torch.float32).eval()
    before = mean_loss(base)
    after = mean_loss(peft.PeftModel.from_pretrained(base, folder).eval())
    write_result(out, before=before, after=after)


def swift(golden, prefix, out, kind):
    """`swift sft`, as the installed ms-swift has it, in this process's place in the world."""
    for name in ("swift", "torch"):
        if importlib.util.find_spec(name) is None:
            cannot(f"{'ms-swift' if name == 'swift' else name} is not in this environment")
    job = Job(json.loads(pathlib.Path(golden).read_text()), pathlib.Path(prefix))
    world, rank = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
    if not job.is_lines:
        cannot("swift sft reads conversations, the golden run tokens; record one of JSON lines")
    if job.text["train_dataloader_shuffle"] != "false":
        cannot("the golden run shuffles its rows in our order; record one with train_dataloader_shuffle = false")
    if job.text["tuner_type"] == "lora" and not job.text["adapters"]:
        cannot("an adapter's first values are ours; record a golden run with adapters, which both begin from")
    if job.rows % world or job.steps * job.rows > sum(1 for line in job.dataset.open() if line.strip()):
        cannot(f"{job.steps} steps of {job.rows} rows are not one pass over the data, or {world} ranks do not divide them")
    folder = pathlib.Path(out).with_suffix(".swift").absolute()
    log = pathlib.Path(f"{folder}.log")
    with log.open("w") as said:
        done = subprocess.run([sys.executable, "-m", "swift.cli.sft", *swift_words(job, world, kind, folder)],
                              stdout=said, stderr=said, env={**os.environ, **swift_variables(folder)})
    if done.returncode != 0:
        sys.exit(f"swift sft: {last_line_of(log)}")
    if rank != 0:
        return
    history = json.loads((folder / "logging.jsonl").read_text().splitlines()[-1])["log_history"]
    steps = [line for line in history if "loss" in line and "grad_norm" in line]
    versions = {name: importlib.metadata.version(name) for name in ("ms-swift", "torch", "transformers")}
    write_result(out, ranks=world, losses=[line["loss"] for line in steps], norms=[line["grad_norm"] for line in steps],
                 versions=versions)


def last_line_of(log):
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1][-600:] if lines else "it said nothing"


def swift_words(job, world, kind, folder):
    """The golden run as swift's own words; what both would do without a word is said too, so that defaults may part."""
    accumulation = int(job.text["gradient_accumulation_steps"])
    accumulation = accumulation if job.rows % (world * accumulation) == 0 else 1
    family = json.loads((job.model / "config.json").read_text()).get("model_type", "")
    words = {name: job.text[name] for name in (
        "max_steps", "lora_dropout", "warmup_steps", "lr_scheduler_type", "weight_decay", "adam_beta1", "adam_beta2",
        "adam_epsilon", "max_grad_norm", "gradient_checkpointing", "seed", "data_seed", "lora_rank", "lora_alpha")}
    words |= {
        "model": job.model, "model_type": job.text["model_type"] or family, "dataset": job.dataset,
        "output_dir": folder, "tuner_type": "full" if job.text["tuner_type"] == "none" else "lora",
        "learning_rate": job.text["learning_rate"] or ("1e-5" if job.text["tuner_type"] == "none" else "1e-4"),
        "per_device_train_batch_size": job.rows // (world * accumulation), "gradient_accumulation_steps": accumulation,
        "torch_dtype": "float32", "bf16": "false", "fp16": "false", "dataset_shuffle": "false",
        "train_dataloader_shuffle": "false", "split_dataset_ratio": "0", "logging_steps": "1", "optim": "adamw_torch",
        "average_tokens_across_devices": "true", "dataloader_num_workers": "0", "dataset_num_proc": "1",
        "add_version": "false", "check_model": "false", "report_to": "none", "save_strategy": "no"}
    for name in ("template", "target_modules"):
        words |= {name: job.text[name]} if job.text[name] else {}
    if job.text["adapters"]:
        words["adapters"] = job.prefix / job.text["adapters"]
    if kind == "cpu":
        words["use_cpu"] = "true"
        words |= {"ddp_backend": "gloo"} if world > 1 else {}
    return [str(word) for name, value in words.items() for word in (f"--{name}", value)]


def swift_variables(folder):
    """What swift and the libraries beneath it keep goes where this check's files are."""
    return {"MODELSCOPE_CACHE": f"{folder}.cache", "HF_HOME": f"{folder}.cache", "HF_DATASETS_CACHE": f"{folder}.cache",
            "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")}


def main():
    if sys.argv[1] == "swift":
        return swift(*sys.argv[2:6])
    for name in ("torch", "transformers") + (("peft",) if sys.argv[1] == "adapter" else ()):
        try:
            __import__(name)
        except ImportError:
            cannot(f"{name} is not in this environment")
    if sys.argv[1] == "adapter":
        return adapter(*sys.argv[2:6])
    method, golden, prefix, out, kind = sys.argv[1:6]
    job = Job(json.loads(pathlib.Path(golden).read_text()), pathlib.Path(prefix))
    local = int(sys.argv[6]) if len(sys.argv) > 6 else 0
    world = local or int(os.environ["WORLD_SIZE"])
    if job.text["tuner_type"] != "none":
        cannot("an adapter's first values are ours; it is compared as an adapter")
    if job.text["train_dataloader_shuffle"] != "false":
        cannot("the golden run shuffles its rows in our order; record one with train_dataloader_shuffle = false")
    if job.rows % world or job.steps * job.rows > len(job.sequences(out)):
        cannot(f"{job.steps} steps of {job.rows} rows are not one pass over the data, or {world} ranks do not divide them")
    if not local:
        return rank_main(int(os.environ["RANK"]), world, "env://", sys.argv[1:6])
    import torch.multiprocessing

    meeting = pathlib.Path(out).with_suffix(".meeting").absolute()
    torch.multiprocessing.spawn(spawned, (local, f"file://{meeting}", sys.argv[1:6]), nprocs=local)


def spawned(rank, world, meeting, arguments):
    rank_main(rank, world, meeting, arguments)


if __name__ == "__main__":
    main()
