#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Our fine-tuning against Python's: `sealift-train sft` and each way of peers.py on one model folder and the same rows.
# Called by gpu.sh. A JSON line for each run, as peers.py prints them, ours with "ours" as the mode; all else on stderr.
#   fine_tuning.py MODEL --program SEALIFT_TRAIN [--profiler SEALIFT_BENCH_PROFILE] [--make tiny|qwen1.5b] OPTIONS OF peers.py
# Equal work: the same values (MODEL/adapter is what both sides' adapters begin with, where it is there), the same rows in the
# same order, AdamW with the same numbers. First losses must be equal, as peers.py has it, and last ones to LAST_TOLERANCE.
# --own-kernels: no peers; each run of ours, and the same with kernels of its own ("own" as the mode), held together likewise.
# Exit status 1, with the names, where a run failed or differed; 77 where this Python has no transformers or PEFT.
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import peers  # noqa: E402
import step_profile  # noqa: E402
import token_rows  # noqa: E402

LAST_TOLERANCE = {"fp32": 1e-4, "mixed": 2e-2, "bf16": 5e-2}  # bf16: any two programs drift apart
METHODS = {"plain": "none", "ddp": "ddp", "fsdp1": "fsdp", "fully_shard": "fsdp"}  # ours for each of theirs
PRECISIONS = {"fp32": "fp32", "mixed": "bf16", "bf16": "bf16"}


def write_rows(options, folder):
    """The rows of all steps, by peers.py's formula: JSON lines for Python, a token file for ours."""
    vocabulary = json.loads((pathlib.Path(options.model) / "config.json").read_text())["vocab_size"]
    rows = peers.token_rows(options, vocabulary).view(-1, options.time).tolist()
    (folder / "rows.jsonl").write_text("".join(json.dumps({"input_ids": row}) + "\n" for row in rows))
    token_rows.write(folder / "rows.tokens", rows, vocabulary)


def command(options, tuner, method, ranks, own):
    words = {"model": options.model, "dataset": options.work / "rows.tokens", "device": options.device,
             "tuner-type": "none" if tuner == "full" else tuner, "precision": PRECISIONS[options.precision],
             "parallel-method": "ddp" if (tuner, method) == ("qlora", "plain") else METHODS[method],  # it has no QLoRA without
             "per-device-train-batch-size": options.rows // ranks, "gradient-accumulation-steps": 1, "max-steps": options.steps,
             "learning-rate": options.learning_rate, "lr-scheduler-type": "constant", "weight-decay": 0, "adam-beta2": 0.999,
             "max-grad-norm": 0, "train-dataloader-shuffle": "false", "save-strategy": "no", "logging-steps": 1,
             "gradient-checkpointing": "true" if options.recompute else "false", "max-length": options.time}
    if tuner != "full":
        begins = {"adapters": options.adapter} if options.adapter else {"lora-rank": options.lora_rank, "lora-alpha": 2 * options.lora_rank}
        words.update(begins, **{"lora-dropout": 0})
    if options.device == "cpu":
        words["threads"] = 1
    if own:
        words["own-kernels"] = "true"
    return ["sft", *(text for name, value in words.items() for text in (f"--{name}", str(value)))]


def call(options, program, words, environment):
    """Why it failed, or None."""
    try:
        ended = subprocess.run([program, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=options.timeout,
                               env={**os.environ, **environment})
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{pathlib.Path(program).name}: {error}"[:400]
    last = (ended.stderr.strip().splitlines() or ["it said nothing"])[-1]
    return f"{pathlib.Path(program).name} ended with {ended.returncode}: {last[:400]}" if ended.returncode else None


def race(options, tuner, method, own=False):
    """One run of ours, as peers.race gives one of theirs; `own`: with kernels of its own."""
    ranks = 1 if method == "plain" else options.ranks
    run = {"name": f"{tuner}_{'plain' if method == 'plain' else METHODS[method]}_{'own' if own else 'ours'}", "ranks": ranks, "rows": options.rows,
           "time": options.time, "precision": options.precision}
    words = command(options, tuner, method, ranks, own)
    with tempfile.TemporaryDirectory(dir=options.work) as name:
        out, events = pathlib.Path(name) / "out", pathlib.Path(name) / "events"
        why = call(options, options.program, [*words, "--ranks", str(ranks), "--output-dir", str(out)], {})
        if why:
            return {**run, "failed": why}
        run.update(figures(options, out))
        if own and (why := not_by_own_kernels(out)):
            peers.say(f"{run['name']}: ran without kernels of its own: {why}")
            if options.device == "cuda":
                return {**run, "failed": f"own kernels did not run: {why}"}
        if options.profile and ranks == 1:
            words += ["--output-dir", f"{out}_profiled"]
            why = call(options, options.profiler, words, {"BENCH_PROFILE": str(events)})
            return {**run, "failed": why} if why else {**run, "profile": step_profile.of_file(events, options.steps, options.device)}
    return run


def not_by_own_kernels(out):
    """Why none ran, or None."""
    said = json.loads((out / "result.json").read_text()).get("own_kernels", {})
    return None if said.get("ran") else said.get("why_not", "result.json does not say why")


def figures(options, out):
    """What peers.py says of a run: of the median step behind the warm-up."""
    result = json.loads((out / "result.json").read_text())
    lines = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    speed = statistics.median(line["tokens_per_second"] for line in lines[peers.WARM_UP:])
    peak = result["monitor"]["peak_device_memory_bytes" if options.device == "cuda" else "peak_host_memory_bytes"]
    return {"ms_per_step": round(options.rows * options.time / speed * 1e3, 2), "tokens_per_second": round(speed),
            "peak_mib": round((peak["max"] if isinstance(peak, dict) else peak) / 2**20), "first_loss": result["losses"][0],
            "last_loss": result["losses"][-1], "device": result["device"].get("name", "cpu"), "torch": result["torch_version"]}


def races(options):
    """Ours for each of theirs, once where several of theirs are one of ours."""
    for tuner, method in dict.fromkeys((tuner, "fsdp1" if METHODS[method] == "fsdp" else method) for tuner, method, _ in peers.wanted(options)):
        for own in (False, True) if options.own_kernels else (False,):
            run = race(options, tuner, method, own)
            print(json.dumps(run), flush=True)
            yield run


def held(runs, precision):
    """As peers.held, and by the last loss where the adapters begin alike."""
    failed = peers.held(runs, precision)
    for tuner in dict.fromkeys(run["name"].split("_")[0] for run in runs):
        good = [run for run in runs if "last_loss" in run and run["name"].split("_")[0] == tuner]
        different = [name for name in peers.apart(good, LAST_TOLERANCE[precision], "last_loss") if name not in failed]
        if different:
            peers.say(f"last losses differ by more than {LAST_TOLERANCE[precision]:g} from that of {good[0]['name']}: {', '.join(different)}")
        failed += different
    return failed


def apart(context, work, *arguments):
    """Does `work` in a process that has imported torch already, which takes seconds."""
    process = context.Process(target=work, args=arguments)
    process.start()
    process.join()
    if process.exitcode:
        raise SystemExit(process.exitcode)


def main():
    parser = peers.make_parser()
    parser.add_argument("--program", required=True, help="sealift-train")
    parser.add_argument("--profiler", help="sealift-bench-profile, for --profile")
    parser.add_argument("--own-kernels", action="store_true", help="no peers: ours without kernels of its own and with them")
    options = parser.parse_args()
    if peers.lacks(options):
        return peers.MISSING
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that ranks end too
    context = peers.prepared(options.backend)
    if options.make and not os.path.exists(os.path.join(options.model, "config.json")):
        apart(context, peers.make, options.make, options.model)
    peers.settle(parser, options)
    adapter = os.path.join(options.model, "adapter")
    options.adapter = options.adapter or (adapter if os.path.isdir(adapter) else None)
    with tempfile.TemporaryDirectory(dir=pathlib.Path(options.model).parent) as name:
        options.work = pathlib.Path(name)
        apart(context, write_rows, options, options.work)
        options.data = str(options.work / "rows.jsonl")
        runs = [*([] if options.own_kernels else peers.races(options, context)), *races(options)]
    failed = held(runs, options.precision)
    if failed:
        peers.say(f"fine_tuning.py: failed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
