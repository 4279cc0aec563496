# SPDX-License-Identifier: Apache-2.0
# A golden fine-tuning job again, by transformers with PyTorch's DDP or FSDP2; or the loss of an adapter in PEFT.
# For the checks python.golden.NAME: a second program computes the same job, so that a difference says which side errs.
# Nothing of Sealift is in it but the reader of token files.
# usage: golden_peer.py ddp|fsdp2 GOLDEN PREFIX OUT cpu|cuda [LOCAL_RANKS]      RANK … as from torchrun, without LOCAL_RANKS
#        golden_peer.py adapter GOLDEN PREFIX OUT ADAPTER
# exit status 3, with the reason as the last line of standard error: this job or this environment cannot be compared
import json
import os
import pathlib
import struct
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
             "lora_rank": "8", "lora_alpha": "32", "logging_steps": "1", "target_modules": "all-linear"}

    def __init__(self, golden, prefix):
        unknown = sorted(set(golden["settings"]) - set(self.KNOWN))
        if golden["verb"] != "sft" or unknown:
            cannot(f"the Python side does not know {golden['verb']} with {', '.join(unknown) or 'its settings'}")
        self.text = {**self.KNOWN, **golden["settings"]}
        if self.text["precision"] != "fp32":
            cannot(f"the Python side computes in fp32, the golden run in {self.text['precision']}")
        self.model, self.dataset = prefix / self.text["model"], prefix / self.text["dataset"]
        if self.dataset.suffix in (".json", ".jsonl"):
            cannot("the golden run reads conversations; make a token file of them with: sealift-train tokenize")
        self.steps, self.rows = int(golden["steps"]), int(golden["rows"])

    def number(self, name):
        return float(self.text[name])


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


def train(rank, world, job, method, device):
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    sequences = read_tokens(job.dataset)
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
    losses, norms = train(rank, world, job, method, device)
    if rank == 0:
        versions = {"torch": torch.__version__, "transformers": __import__("transformers").__version__}
        pathlib.Path(out).write_text(json.dumps({"ranks": world, "losses": losses, "norms": norms, "versions": versions}))
    dist.destroy_process_group()


def adapter(golden, prefix, out, folder):
    """The loss over all tokens that count, of the base alone and with the adapter."""
    import peft
    import torch
    import transformers

    job = Job(json.loads(pathlib.Path(golden).read_text()), pathlib.Path(prefix))
    sequences = read_tokens(job.dataset)

    def mean_loss(model):
        with torch.no_grad():
            total = sum(loss_sum(model, ids, counts, "cpu").double().item() for ids, counts in sequences)
        return total / sum(sum(counts[1:]) for _, counts in sequences)

    base = transformers.AutoModelForCausalLM.from_pretrained(job.model, dtype=torch.float32).eval()
    before = mean_loss(base)
    after = mean_loss(peft.PeftModel.from_pretrained(base, folder).eval())
    pathlib.Path(out).write_text(json.dumps({"before": before, "after": after}))


def main():
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
    if job.rows % world or job.steps * job.rows > len(read_tokens(job.dataset)):
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
