#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# What Python does on this machine with a model: transformers, with PEFT or without, under each of PyTorch's ways to train, eager
# and with each layer compiled. A JSON line each on stdout; all else on stderr. Needs torch and transformers; PEFT for lora.
#   peers.py MODEL [--methods plain,ddp,fsdp1,fully_shard] [--modes eager,compiled] [--tuners full,lora,qlora] [--rows 4]
#            [--time 2048] [--steps 13] [--ranks N] [--precision fp32|mixed|bf16] [--data FILE] [--recompute] [--profile]
#   peers.py FOLDER --make tiny|qwen1.5b      a model of random weights, where there is no other; --help says all
# Each runs alone, in processes of its own. All start from the same values, get the same rows and must have the same first loss:
# to 1e-5 in fp32, to 1e-2 else, where they round in other places. Exit status 1, with the names, where one failed or
# differed; 77 where this Python has no transformers or PEFT.
import argparse
import importlib.util
import json
import multiprocessing
import os
import pathlib
import signal
import statistics
import sys
import tempfile
import time

sys.dont_write_bytecode = True
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")

METHODS = ("plain", "ddp", "fsdp1", "fully_shard")
MODES = ("eager", "compiled")
TUNERS = ("full", "lora", "qlora")
NEEDED = {"full": ["torch", "transformers"], "lora": ["torch", "transformers", "peft"],
          "qlora": ["torch", "transformers", "peft", "bitsandbytes"]}
MISSING = 77  # exit status where Python lacks what it needs: left out, not failed
WARM_UP = 3  # steps that no time is taken of: compilation, allocators, NCCL's connections
FIRST_TOLERANCE = {"fp32": 1e-5, "mixed": 1e-2, "bf16": 1e-2}
SHAPES = {  # of made models
    "tiny": dict(vocab_size=256, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
                 num_key_value_heads=2, max_position_embeddings=256, tie_word_embeddings=True),
    "qwen1.5b": dict(vocab_size=151936, hidden_size=1536, intermediate_size=8960, num_hidden_layers=28, num_attention_heads=12,
                     num_key_value_heads=2, max_position_embeddings=32768, tie_word_embeddings=True),
}


def say(text):
    print(text, file=sys.stderr, flush=True)


def make(shape, folder):
    import torch
    import transformers

    torch.manual_seed(1)
    model = transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**SHAPES[shape]))
    model.save_pretrained(folder)
    if importlib.util.find_spec("peft") is not None:  # for --adapter
        adapted(model, 8).save_pretrained(os.path.join(folder, "adapter"))


def adapted(model, rank):
    """`model` with PEFT's adapter of random values on all projections, the same in each run."""
    import peft
    import torch

    torch.manual_seed(1)
    config = peft.LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear", task_type="CAUSAL_LM")
    return peft.get_peft_model(model, config, autocast_adapter_dtype=False)


def token_rows(options, vocabulary):
    """[steps, rows, time]: of the file's lines, each with `input_ids` and cut to `time`, again from the first where they end;
    without a file by a formula, so that every run has the same."""
    import torch

    count = options.steps * options.rows
    if not options.data:
        x = (torch.arange(count * options.time) * 1103515245 + 12345) & 0x7FFFFFFF
        x = ((x ^ (x >> 15)) * 747796405) & 0x7FFFFFFF
        return ((x ^ (x >> 13)) % vocabulary).view(options.steps, options.rows, options.time)
    with open(options.data) as file:
        lines = [json.loads(line)["input_ids"] for line in file if line.strip()]
    lines = [line[:options.time] for line in lines if len(line) >= options.time]
    if not lines:
        raise SystemExit(f"{options.data}: no line has input_ids of at least {options.time} tokens; give a smaller --time")
    rows = torch.tensor([lines[i % len(lines)] for i in range(count)])
    if not 0 <= rows.min() <= rows.max() < vocabulary:
        raise SystemExit(f"{options.data}: tokens from {rows.min()} to {rows.max()}; the model has 0 to {vocabulary - 1}")
    return rows.view(options.steps, options.rows, options.time)


def build(options, device):
    """(the model as transformers has it, with PEFT's adapter where it is tuned so; its decoder layers)"""
    import torch
    import transformers

    dtype = torch.bfloat16 if options.precision == "bf16" else torch.float32
    stored = {}
    if options.tuner == "qlora":
        stored = {"device_map": {"": device}, "quantization_config": transformers.BitsAndBytesConfig(
            load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True,
            bnb_4bit_compute_dtype=torch.float32 if options.precision == "fp32" else torch.bfloat16)}
    model = transformers.AutoModelForCausalLM.from_pretrained(options.model, dtype=dtype, attn_implementation="sdpa", **stored)
    model.config.use_cache = False
    if options.recompute:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    layers = max((module for module in model.modules() if isinstance(module, torch.nn.ModuleList)), key=len)
    if options.tuner != "full":
        model.requires_grad_(False)
        if options.adapter:
            import peft

            model = peft.PeftModel.from_pretrained(model, options.adapter, is_trainable=True, autocast_adapter_dtype=False)
        else:
            model = adapted(model, options.lora_rank)
    return (model if stored else model.to(device)).train(), list(layers)


def wrap(options, model, layers, device):
    """`model` under the method, each layer compiled before it is wrapped."""
    import torch

    if options.mode == "compiled":
        for layer in layers:
            layer.compile(backend=options.backend)
    mixed = options.precision == "mixed"
    if options.method == "ddp":
        return torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    if options.method == "fsdp1":
        from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision
        from torch.distributed.fsdp.wrap import ModuleWrapPolicy

        precision = MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.float32) if mixed else None
        return FullyShardedDataParallel(model, auto_wrap_policy=ModuleWrapPolicy({type(layers[0])}), use_orig_params=True,
                                        mixed_precision=precision, device_id=device)
    if options.method == "fully_shard":
        from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

        policy = dict(mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)) if mixed else {}
        mesh = torch.distributed.init_device_mesh(device.type, (torch.distributed.get_world_size(),))
        for layer in layers:
            fully_shard(layer, mesh=mesh, **policy)
        return fully_shard(model, mesh=mesh, **policy)
    return model


def run_rank(options, store):
    """One rank of one run; the first prints what all have seen."""
    import torch
    import torch.distributed as distributed
    import transformers

    cuda = options.device == "cuda"
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
        # As ours has it: the products of fp32 are of fp32.
        torch.backends.cuda.matmul.allow_tf32 = False
    else:
        torch.set_num_threads(1)
    number, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    distributed.init_process_group("nccl" if cuda else "gloo", init_method=store, rank=number,
                                   world_size=world)
    model, layers = build(options, device)
    vocabulary = model.config.vocab_size
    model = wrap(options, model, layers, device)
    optimizer = torch.optim.AdamW([each for each in model.parameters() if each.requires_grad], lr=options.learning_rate,
                                  weight_decay=0.0, fused=True)
    share = options.rows // world
    data = token_rows(options, vocabulary)[:, number * share:(number + 1) * share].to(device)
    # FSDP has its own policy for it.
    casts = options.precision == "mixed" and options.method in ("plain", "ddp")

    def train(rows):
        """The step's loss, over all ranks."""
        with torch.autocast(options.device, torch.bfloat16, enabled=casts):
            loss = model(input_ids=rows, labels=rows, use_cache=False).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        mean = loss.detach().double()
        distributed.all_reduce(mean)
        return mean.item() / world

    losses, seconds = [], []
    for rows in data:
        if cuda:
            torch.cuda.synchronize()
        start = time.perf_counter()
        losses.append(train(rows))
        seconds.append(time.perf_counter() - start)
    peak = torch.cuda.max_memory_allocated() if cuda else peak_of_process()
    if number == 0:
        step = statistics.median(seconds[WARM_UP:])
        versions = {"torch": torch.__version__, "transformers": transformers.__version__}
        if options.tuner != "full":
            import peft

            versions["peft"] = peft.__version__
        print(json.dumps({
            "ms_per_step": round(step * 1e3, 2), "tokens_per_second": round(options.rows * options.time / step),
            "peak_mib": round(peak / 2**20), "first_loss": losses[0], "last_loss": losses[-1],
            "device": torch.cuda.get_device_name() if cuda else "cpu", **versions}), flush=True)
    if options.profile:  # after the figures, which it cannot cost
        import step_profile

        counts = step_profile.profile(lambda: train(data[-1]), options.device)
        if number == 0:
            print(json.dumps({"profile": counts}), flush=True)
    distributed.barrier()
    # Not by Python's end: the group's destructor, called by DDP's, has waited for a thread that never came (torch 2.11, Gloo).
    os._exit(0)


def peak_of_process():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM:"))


def start_rank(options, number, count, folder, work):
    """In a process that has imported all already: its session, its files, its work."""
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for stream, name in ((1, "out"), (2, "err")):
        file = os.open(f"{folder}/{number}.{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(file, stream)
    os.environ.update(RANK=str(number), LOCAL_RANK=str(number), WORLD_SIZE=str(count))
    if options.device == "cpu":
        os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    (work or run_rank)(options, f"file://{folder}/store")


def wait_for(ranks, timeout):
    """(why it failed, by which rank): the first rank that did, or that the time was up; else none. No rank outlives it."""
    limit = time.monotonic() + timeout
    try:
        while True:
            codes = [each.exitcode for each in ranks]
            for number, code in enumerate(codes):
                if code:
                    return f"rank {number} ended with {code}", number
            if all(code == 0 for code in codes):
                return None, 0
            if time.monotonic() > limit:
                return f"not done after {timeout} s", codes.index(None)
            time.sleep(0.05)
    finally:
        for each in ranks:
            try:
                os.killpg(each.pid, signal.SIGKILL)  # with what it started, as the compiler
            except ProcessLookupError:
                each.kill()
            each.join()


def last_error(path):
    """The last line of a rank's stderr that says something."""
    text = path.read_text(errors="replace") if path.exists() else ""  # killed before it made one
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next((line for line in reversed(lines) if "Error" in line), lines[-1] if lines else "it said nothing")[:400]


def on_ranks(options, context, count, work=None):
    """(JSON lines that the first of `count` ranks printed, why a rank failed, or None). `work`: what they do, or run_rank."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        ranks = [context.Process(target=start_rank, args=(options, number, count, name, work)) for number in range(count)]
        for each in ranks:
            each.start()
        why, number = wait_for(ranks, options.timeout)
        out = folder / "0.out"
        lines = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
        return lines, f"{why}: {last_error(folder / f'{number}.err')}" if why else None


def race(options, context):
    """One run in processes of its own: what its first rank printed, beside what was asked; else "failed" and why."""
    count = 1 if options.method == "plain" else options.ranks
    said = {"name": f"{options.tuner}_{options.method}_{options.mode}", "ranks": count, "rows": options.rows, "time": options.time,
            "precision": options.precision}
    lines, why = on_ranks(options, context, count)
    for line in lines:
        said.update(line)
    return {**said, "failed": why} if why else said


def forking():
    """The same where torch alone is needed."""
    import torch.distributed  # noqa: F401

    return multiprocessing.get_context("fork")


def prepared(backend="inductor"):
    """Where ranks come from: processes that have imported what takes ten seconds, and have not touched a GPU."""
    context = multiprocessing.get_context("forkserver")
    compiler = "torch._inductor.compile_fx" if backend == "inductor" else "torch._functorch.aot_autograd"
    context.set_forkserver_preload(["torch.distributed.fsdp", "torch._dynamo", compiler, "transformers.models.auto.modeling_auto",
                                    "transformers.models.qwen2.modeling_qwen2", "peft"])
    return context


def apart(runs, tolerance, key="first_loss"):
    """The names of runs whose loss is not the first run's."""
    # Not "greater than": NaN must not pass for agreement.
    return [run["name"] for run in runs if not abs(run[key] - runs[0][key]) <= tolerance * abs(runs[0][key])]


def wanted(options):
    """(tuner, method, mode) of each run that was asked for and can be: matrices of 4 bits are no parameters that FSDP can split,
    and compiled on a CPU they take minutes."""
    for tuner in options.tuners:
        for method in options.methods:
            for mode in options.modes:
                can = tuner != "qlora" or (method in ("plain", "ddp") and (options.device, mode) != ("cpu", "compiled"))
                if can and (not options.runs or f"{tuner}_{method}_{mode}" in options.runs):
                    yield tuner, method, mode


def races(options, context):
    """Each run, printed as it ends."""
    for options.tuner, options.method, options.mode in wanted(options):
        run = race(options, context)
        print(json.dumps(run), flush=True)
        yield run


def held(runs, precision):
    """The names of what failed or has another first loss. Models of 4 bits are others, so each tuner has its own."""
    failed = [run["name"] for run in runs if "failed" in run]
    for tuner in dict.fromkeys(run["name"].split("_")[0] for run in runs):
        good = [run for run in runs if "failed" not in run and run["name"].split("_")[0] == tuner]
        different = apart(good, FIRST_TOLERANCE[precision])
        if different:
            say(f"first losses differ by more than {FIRST_TOLERANCE[precision]:g} from that of {good[0]['name']}: "
                + ", ".join(f"{run['name']} {run['first_loss']:.8g}" for run in good if run["name"] in (good[0]["name"], *different)))
        failed += different
    return failed


def words(known):
    def parse(text):
        chosen = text.split(",")
        for word in chosen:
            if word not in known:
                raise argparse.ArgumentTypeError(f"'{word}' is unknown; use some of {','.join(known)}")
        return chosen
    return parse


def make_parser():
    parser = argparse.ArgumentParser(description="What Python does on this machine with a model: a JSON line for each way to train.")
    parser.add_argument("model", help="a folder with config.json and safetensors; with --make, where to write one")
    parser.add_argument("--make", choices=list(SHAPES), help="write a model of random weights, and no more")
    parser.add_argument("--methods", type=words(METHODS), default=list(METHODS), help="plain: one process; fsdp1: FullyShardedDataParallel")
    parser.add_argument("--modes", type=words(MODES), default=list(MODES))
    parser.add_argument("--tuners", type=words(TUNERS), default=["full", "lora"], help="lora: of all projections; qlora: NF4, not with FSDP")
    parser.add_argument("--runs", type=lambda text: text.split(","), help="of all these only those of these names, as lora_ddp_eager")
    parser.add_argument("--rows", type=int, default=4, help="of a step, over all ranks")
    parser.add_argument("--time", type=int, default=2048, help="tokens of a row")
    parser.add_argument("--steps", type=int, default=13, help=f"the first {WARM_UP} are not timed")
    parser.add_argument("--data", help='JSON lines with "input_ids"; without: rows by a formula')
    parser.add_argument("--precision", choices=list(FIRST_TOLERANCE), default="mixed",
                        help="mixed: fp32 values, bf16 products; bf16: all of it")
    parser.add_argument("--learning-rate", type=float, default=1e-4)
    parser.add_argument("--lora-rank", type=int, default=8)
    parser.add_argument("--recompute", action="store_true", help="each layer in backward again")
    parser.add_argument("--device", choices=["cpu", "cuda"])
    parser.add_argument("--ranks", type=int, help="of all methods but plain; without: one for each GPU, or 2")
    parser.add_argument("--backend", default="inductor", help="of torch.compile; aot_eager: traced only, needs no compiler")
    parser.add_argument("--adapter", help="PEFT's folder to begin with; without: random values of --lora-rank")
    parser.add_argument("--profile", action="store_true", help="then count what two more steps ask of the device")
    parser.add_argument("--timeout", type=int, default=1800, help="seconds of one run")
    return parser


def settle(parser, options):
    """What depends on the machine, and what cannot be."""
    if options.time < 2:
        parser.error(f"--time {options.time}: a token is predicted from those before it; use at least 2")
    if options.steps <= WARM_UP:
        parser.error(f"--steps {options.steps}: the first {WARM_UP} are not timed; use at least {WARM_UP + 1}")
    if not os.path.isfile(os.path.join(options.model, "config.json")):
        parser.error(f"{options.model}: has no config.json; give a model's folder, or make one with --make tiny")
    cards = None
    if options.device != "cpu":
        import torch

        cards = torch.cuda.device_count()
        if options.device == "cuda" and not cards:
            parser.error("--device cuda: torch sees no GPU; use --device cpu, or a torch built for this driver")
        options.device = "cuda" if cards else "cpu"
    if options.ranks is None:
        options.ranks = cards or 2
    if cards and options.ranks > cards:
        parser.error(f"--ranks {options.ranks}: there are {cards} GPUs, and NCCL takes no two ranks on one; use at most {cards}")
    shares = options.ranks if any(method != "plain" for _, method, _ in wanted(options)) else 1
    if options.ranks < 1 or options.rows < 1 or options.rows % shares:
        parser.error(f"--rows {options.rows}: each of {options.ranks} ranks takes as many; use a multiple of {options.ranks}")


def lacks(options):
    """Says what this Python has not; whether there is such a thing."""
    missing = [name for name in NEEDED[max(options.tuners, key=TUNERS.index)] if importlib.util.find_spec(name) is None]
    if missing:
        rest = [tuner for tuner in options.tuners if not set(missing) & set(NEEDED[tuner])]
        say(f"peers.py: this Python has no {' and no '.join(missing)}: install it beside torch"
            + (f", or leave it out by --tuners {','.join(rest)}" if rest else ""))
    return bool(missing)


def main():
    parser = make_parser()
    options = parser.parse_args()
    if lacks(options):
        return MISSING
    if options.make:
        make(options.make, options.model)
        return 0
    settle(parser, options)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that ranks end too
    failed = held(list(races(options, prepared(options.backend))), options.precision)
    if failed:
        say(f"peers.py: failed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
