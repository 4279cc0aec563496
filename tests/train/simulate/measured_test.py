#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Real steps of `sealift-train run` held to the simulated ones: rates come from six runs, all others are predicted; and to
# the seconds of `sealift-train plan`, which gets the same rates and knows the model from a config.json alone.
#   measured_test.py SEALIFT_TRAIN STEP_TIME_OF [--rounds N] [--keep FILE]      --rounds 0: judge what FILE has
# The shortest step of several rounds counts, and one beside which others used the cores only where there is no other:
# with two cores for two ranks a compiler next door doubles a step. --keep writes what was measured, and reads it first.
import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

LAYERS, WIDTH, HEADS, CONTEXT, VOCABULARY, STEPS = 6, 384, 6, 128, 61, 8
BLOCK = 12 * WIDTH * WIDTH + 13 * WIDTH
ROOT = (VOCABULARY + CONTEXT) * WIDTH + 2 * WIDTH
WITHIN, AIM = 0.15, 0.10
PLAN_PASS_BYTES = 40  # that a pass moves per element on a host in fp32: docs/planning.md
# Of Gloo on one host, of copies by the cores that compute, and of AdamW (a step less its forward and backward).
LATENCY, LOST, MEMORY = 5e-4, 1, 2e10
QUIET = 0.15  # cores of others beside a step that counts
ENOUGH = 3  # of such steps


class Job:
    def __init__(self, name, method, ranks=2, sequences=2, micro=1, **settings):
        self.name, self.method, self.ranks, self.sequences, self.micro = name, method, ranks, sequences, micro
        self.settings = settings

    def flags(self):
        flags = {"parallel-method": self.method, "ranks": self.ranks, "micro-batches": self.micro,
                 "global-batch": self.ranks * self.sequences * self.micro, "layers": LAYERS, "width": WIDTH,
                 "heads": HEADS, "context": CONTEXT, "vocabulary": VOCABULARY, "threads": 1, "steps": STEPS,
                 "device": "cpu", **{name.replace("_", "-"): value for name, value in self.settings.items()}}
        return [text for name, value in flags.items() for text in (f"--{name}", str(value))]

    def shape(self, pass_bytes):
        """What the job does, counted as docs/simulate.md says."""
        setting = self.settings.get
        sharded = self.method == "fsdp"
        sent = (self.ranks - 1) / self.ranks
        tokens = self.sequences * CONTEXT
        # Over Gloo, ours sends to each rank its part of a reduction, and a core adds up what comes.
        def unit(elements, flops):
            return {"forward_flops": flops, "backward_flops": flops * (3 if setting("recompute") else 2),
                    "forward_memory_bytes": round(pass_bytes * elements / 3),
                    "backward_memory_bytes": round(pass_bytes * elements * (3 if setting("recompute") else 2) / 3),
                    "gather_bytes": round(4 * elements * sent) if sharded else 0,
                    "reduce_bytes": round((4 if sharded else 8) * elements * sent)}
        layer = tokens * (2 * BLOCK + 4 * CONTEXT * WIDTH)
        head = 2 * tokens * VOCABULARY * WIDTH
        together = {"root_only": LAYERS, "by_block_group": setting("blocks_per_unit")}
        size = together.get(setting("wrapping_strategy"), 1)
        units = [unit(ROOT, head)] + [unit(size * BLOCK, size * layer)] * (LAYERS // size)
        if setting("wrapping_strategy") == "root_only":
            units = [unit(ROOT + LAYERS * BLOCK, head + LAYERS * layer)]
        elements = ROOT + LAYERS * BLOCK
        reductions = self.micro if setting("reduce_every_micro_batch") == "true" else 1
        sums = round(4 * elements * (self.ranks + 1) / self.ranks) * reductions if sharded else 0
        shape = {"units": units, "micro_batches": self.micro, "small_collectives": 2,
                 "gather_again_in_backward": setting("reshard_after_forward") != "false",
                 "keep_gathered": setting("keep_gathered") == "true",
                 "reduce_every_micro_batch": setting("reduce_every_micro_batch") == "true",
                 "forward_prefetch": setting("forward_prefetch", 1),
                 "backward_prefetch": setting("backward_prefetch", 1),
                 "optimizer_bytes": round(32 * elements / (self.ranks if sharded else 1)) + sums}
        if not sharded:
            shape["bucket_bytes"] = round(2 * sent * setting("bucket_mb", 25) * (1 << 20))
            shape["first_bucket_bytes"] = round(2 * sent * (1 << 20))
        return shape


def grid():
    """Every way at 1, 2 and 4 sequences a rank and micro-batch, and 1, 2 and 4 micro-batches a step."""
    for sequences in (1, 2, 4):
        for micro in (1, 2, 4):
            def job(way, method="fsdp", **settings):
                return Job(f"{way}, {sequences} x {micro}", method, sequences=sequences, micro=micro, **settings)
            freed = {"keep_gathered": "false"} if micro > 1 else {}
            yield job("ddp", "ddp")
            yield job("fsdp", **freed)
            yield job("fsdp, kept until backward", reshard_after_forward="false", **freed)
            if micro > 1:
                yield job("fsdp, kept between", keep_gathered="true")
                yield job("fsdp, each reduced", reduce_every_micro_batch="true", **freed)
            if sequences == 2 and micro < 4:
                yield job("ddp, recomputed", "ddp", recompute="true")
                yield job("fsdp, recomputed", recompute="true", **freed)
                yield job("fsdp, units of 2 blocks", wrapping_strategy="by_block_group", blocks_per_unit=2, **freed)
                yield job("fsdp, units of 3 blocks", wrapping_strategy="by_block_group", blocks_per_unit=3, **freed)
                yield job("fsdp, one unit", wrapping_strategy="root_only", **freed)
                yield job("fsdp, nothing ahead", forward_prefetch=0, backward_prefetch=0, **freed)
                yield job("fsdp, 2 ahead", forward_prefetch=2, backward_prefetch=2, **freed)
                yield job("ddp, buckets of 4 MiB", "ddp", bucket_mb=4)


# From these the rates are taken: with much and little to compute, to send, and to do for each parameter.
GIVEN = ("ddp, 1 x 4", "ddp, 2 x 1", "ddp, 4 x 1", "fsdp, 1 x 4", "fsdp, 2 x 1", "fsdp, 4 x 1")
CALIBRATE = [job for job in grid() if job.name in GIVEN]
PREDICT = [job for job in grid() if job.name not in GIVEN] + [
    Job("4 ranks: ddp", "ddp", ranks=4),
    Job("4 ranks: ddp, 2 x 2", "ddp", ranks=4, micro=2),
    Job("4 ranks: ddp, 4 x 1", "ddp", ranks=4, sequences=4),
    Job("4 ranks: fsdp", "fsdp", ranks=4),
    Job("4 ranks: fsdp, kept until backward", "fsdp", ranks=4, reshard_after_forward="false"),
    Job("4 ranks: fsdp, 4 x 1", "fsdp", ranks=4, sequences=4),
    Job("4 ranks: fsdp, recomputed", "fsdp", ranks=4, recompute="true"),
    Job("4 ranks: fsdp, one unit", "fsdp", ranks=4, wrapping_strategy="root_only"),
    Job("4 ranks: fsdp, freed between, 2 x 2", "fsdp", ranks=4, micro=2, keep_gathered="false"),
    Job("4 ranks: fsdp, kept between, 2 x 4", "fsdp", ranks=4, micro=4, keep_gathered="true"),
    Job("4 ranks: fsdp, 8 x 1", "fsdp", ranks=4, sequences=8),
]


def ticks(path, fields):
    """The sum of some fields of a line of proc(5) after its last parenthesis, in seconds; 0 where it is gone."""
    try:
        line = pathlib.Path(path).read_text().split("\n")[0]
    except OSError:
        return 0
    values = line.rsplit(")", 1)[-1].split()
    return sum(int(values[i]) for i in fields) / 100


def cores_of_others(group):
    """Seconds of all cores that processes outside of this group have used; what ended in it counts as theirs."""
    everyone = ticks("/proc/stat", (1, 2, 3, 6, 7, 8))
    own = 0
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            mine = os.getpgid(int(entry.name)) == group
        except OSError:
            mine = False
        own += ticks(entry / "stat", (11, 12)) if mine else 0
    return everyone - own


def steps_of(command, log, tokens):
    """Runs a trainer; of each step but the first its seconds, and the cores that others used beside it."""
    process = subprocess.Popen(list(map(str, command)), start_new_session=True, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    steps, last = [], None
    while process.poll() is None:
        time.sleep(0.005)
        lines = log.read_text().split("\n")[:-1] if log.exists() else []
        if last is not None and len(lines) == last[0]:
            continue
        now = (len(lines), time.monotonic(), cores_of_others(process.pid))
        if last is not None and last[0] + 1 == now[0] > 1:
            others = (now[2] - last[2]) / (now[1] - last[1])
            steps.append((tokens / json.loads(lines[-1])["tokens_per_second"], others))
        last = now
    if process.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} ended with {process.returncode}")
    return steps


def run(program, job):
    with tempfile.TemporaryDirectory() as folder:
        return steps_of([program, "run", *job.flags(), "--out", folder], pathlib.Path(folder) / "log.jsonl",
                        job.ranks * job.sequences * job.micro * CONTEXT)


def measure(jobs, run_job, rounds, keep):
    """The shortest step of each job that had the cores for itself; where none had, the shortest of all. `keep` is a file
    of what was measured before, and gets what is."""
    known = json.loads(keep.read_text()) if keep and keep.exists() else {}
    for _ in range(rounds):
        for job in jobs:
            best = known.setdefault(job.name, {"seconds": float("inf"), "quiet": 0})
            if best["quiet"] >= ENOUGH:
                continue
            steps = run_job(job)
            quiet = [seconds for seconds, others in steps if others < QUIET]
            if quiet and not best["quiet"]:
                best["seconds"] = float("inf")
            if quiet or not best["quiet"]:
                best["seconds"] = min(best["seconds"], *(quiet or [seconds for seconds, _ in steps]))
            best["quiet"] += len(quiet)
            print(f"  {job.name}: {best['seconds']:.3f} s, {len(quiet)} of {len(steps)} steps quiet", file=sys.stderr,
                  flush=True)
            if keep:
                keep.write_text(json.dumps(known, indent=1))
    return known


def rates_at(job, rates):
    """Four ranks on two cores: each has half of everything that cores do."""
    part = min(1, 2 / job.ranks)
    return {"flops": rates["flops"] * part, "link_bytes_per_second": rates["link"] * part,
            "memory_bytes_per_second": rates["memory"] * part, "collectives_at_once": 2,
            "link_latency_seconds": LATENCY * (job.ranks - 1) / part, "computing_lost_to_transfers": LOST}


def simulated(program, jobs, rates):
    text = json.dumps([{"shape": job.shape(rates["pass_bytes"]), "rates": rates_at(job, rates)} for job in jobs])
    result = subprocess.run([program], input=text, capture_output=True, text=True, check=True)
    return [each["seconds"] for each in json.loads(result.stdout)]


def fit(given, predict, measured, rates, names, finest=1.002):
    """The rates with which the given runs come out best: least squares of the relative errors. `predict(rates)`: their
    seconds; of `rates`, where to begin, those called `names` are changed, by a factor of `finest` at last."""
    def error(rates):
        return sum(math.log(seconds / measured[job.name]["seconds"]) ** 2 for job, seconds in zip(given, predict(rates)))

    best, factor = error(rates), 1.5
    while factor > finest:
        tried = [{**rates, name: rates[name] * way} for name in names for way in (factor, 1 / factor)]
        least, candidate = min(((error(each), each) for each in tried), key=lambda pair: pair[0])
        if least < best:
            best, rates = least, candidate
        else:
            factor = math.sqrt(factor)
    return rates


def decoder(folder):
    """The folder of a Llama whose blocks multiply as the verification model's: 3 x 8/3 of the width for its 2 x 4."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": WIDTH, "num_hidden_layers": LAYERS,
        "intermediate_size": 8 * WIDTH // 3, "num_attention_heads": HEADS, "num_key_value_heads": HEADS,
        "vocab_size": VOCABULARY, "max_position_embeddings": CONTEXT, "tie_word_embeddings": True, "hidden_act": "silu",
        "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "torch_dtype": "float32"}))
    return folder


def plan_key(job):
    """How plan's table names what `job` does; None for what it has no row for (units, buckets, what is prefetched)."""
    setting = job.settings.get
    if set(job.settings) - {"recompute", "reshard_after_forward", "keep_gathered"}:
        return None
    if job.method == "fsdp" and job.micro > 1 and setting("keep_gathered") != "true":
        return None  # the table keeps what fits
    return (job.method, job.sequences, job.micro, setting("recompute") == "true",
            setting("reshard_after_forward") != "false")


def planned(program, jobs, rates, folder):
    """Seconds of a step by the table of `sealift-train plan`, by job's name."""
    tables, seconds = {}, {}
    for job in jobs:
        key = plan_key(job)
        if key is None:
            continue
        asked = (job.ranks, job.ranks * job.sequences * job.micro)
        if asked not in tables:
            has = rates_at(job, rates)
            # plan counts what a pass moves; the simulator's was fitted at MEMORY. The time is the same.
            memory = has["memory_bytes_per_second"] * PLAN_PASS_BYTES / max(1, rates["pass_bytes"])
            words = ["--model", folder, "--machine", f"1x{job.ranks}x64GB", "--device", "cpu", "--tuner", "none",
                     "--precision", "fp32", "--length", CONTEXT, "--batch", asked[1], "--no-offload", "--json",
                     "--flops", f"{2 * has['flops'] / 1e9:.4f}G",  # half of it counts in fp32
                     "--card-link", f"{has['link_bytes_per_second'] / 1e6:.4f}MB/s", "--memory-rate",
                     f"{memory / 1e6:.4f}MB/s", "--latency", f"{has['link_latency_seconds'] * 1e6:.4f}us"]
            done = subprocess.run([program, "plan", *map(str, words)], capture_output=True, text=True, check=True)
            tables[asked] = {(row["parallel_method"], row["per_device_train_batch_size"],
                              row["gradient_accumulation_steps"], row["gradient_checkpointing"],
                              row["reshard_after_forward"] or row["parallel_method"] == "ddp"): row["seconds"]["step"]
                             for row in reversed(json.loads(done.stdout)["rows"])}
        seconds[job.name] = tables[asked][key]
    return seconds


def hold(title, jobs, given, seconds, measured, known=0):
    """Prints a table of predictions; whether more of them than are known to be are too far off."""
    offs = []
    print(f"\n{title}\n| run | measured, s | predicted, s | | steps that had the cores |\n|---|---|---|---|---|")
    for job in jobs:
        if job.name not in seconds:
            continue
        real = measured[job.name]
        off = seconds[job.name] / real["seconds"] - 1
        if job not in given:
            offs.append((abs(off), job.name))
        print(f"| {job.name} | {real['seconds']:.3f} | {seconds[job.name]:.3f} | {100 * off:+.0f} %"
              f"{', given' if job in given else ''} | {real['quiet']} |")
    far = [f"{name} by {100 * off:.0f} %" for off, name in sorted(offs, reverse=True) if off > WITHIN]
    print(f"{len(offs)} predicted, off by {100 * statistics.median(off for off, _ in offs):.1f} % (median), at most "
          f"{100 * max(offs)[0]:.1f} %; {sum(off <= AIM for off, _ in offs)} within {100 * AIM:.0f} %")
    print(f"{len(far)} beyond {100 * WITHIN:.0f} %: {', '.join(far) or 'none'}")
    return len(far) > known


def arguments_of(*programs):
    parser = argparse.ArgumentParser()
    for program in programs:
        parser.add_argument(program)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keep", type=pathlib.Path)
    return parser.parse_args()


def main():
    arguments = arguments_of("trainer", "simulator")
    jobs = CALIBRATE + PREDICT
    measured = measure(jobs, lambda job: run(arguments.trainer, job), arguments.rounds, arguments.keep)
    rates = fit(CALIBRATE, lambda rates: simulated(arguments.simulator, CALIBRATE, rates), measured,
                {"flops": 6e10, "link": 1e9, "memory": MEMORY, "pass_bytes": 30}, ("flops", "link", "pass_bytes"))
    print({name: f"{value:.3g}" for name, value in rates.items()})
    simulator = {job.name: seconds for job, seconds in zip(jobs, simulated(arguments.simulator, jobs, rates))}
    with tempfile.TemporaryDirectory() as folder:
        plan = planned(arguments.trainer, jobs, rates, decoder(pathlib.Path(folder) / "model"))
    too_far = [hold("The simulator, by the units of the model", jobs, CALIBRATE, simulator, measured),
               hold("sealift-train plan, by config.json", jobs, CALIBRATE, plan, measured)]
    return 1 if any(too_far) else 0


if __name__ == "__main__":
    sys.exit(main())
