# SPDX-License-Identifier: Apache-2.0
# The training core against PyTorch's Python DDP and fully_shard, against itself, and against LibTorch alone.
# Called by run.sh. Starts both sides once, lets them run in turn, and prints one line per comparison.
# The peer gets its best: all its settings run the same warm-up and the fastest one races. Losses must agree, so that
# nobody is fast by doing less.
#   compare_training.py PROGRAM [PATTERN]    environment: BENCH_ROUNDS (6), BENCH_SECONDS (1) of a side in a round,
#                                            BENCH_STEPS, instead of seconds; BENCH_DEVICE (cpu), BENCH_TINY: the Llama in small
#   compare_training.py --names              lists the comparisons
# On cuda only the Llama's comparisons are made: gpu.sh calls them.
import collections
import functools
import json
import math
import os
import re
import statistics
import subprocess
import sys
import warnings

import forked

HERE = os.path.dirname(os.path.abspath(__file__))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "6"))
SECONDS = float(os.environ.get("BENCH_SECONDS", "1"))
STEPS = int(os.environ.get("BENCH_STEPS", "0"))
DEVICE = os.environ.get("BENCH_DEVICE", "cpu")
LLAMA = "llama_tiny" if os.environ.get("BENCH_TINY") else "llama"
QWEN = os.path.join(os.path.dirname(HERE), "build/bench/qwen")  # made once by training_peer.py
MAX_STEPS = 400  # in a round, for tiny models
LOSS_TOLERANCE = 1e-3  # over a whole curve
FIRST_TOLERANCE = 1e-5  # of the first step, where both have the same values

say = functools.partial(print, file=sys.stderr, flush=True)

# A side of a comparison: ours unless `peer` is a setting of PyTorch's. `ranks` processes run `method` on the model.
Side = collections.namedtuple("Side", "method micro_batches ranks peer_settings", defaults=(None,))
# `settings` go to both sides. `tolerance` is of the whole curve; None where any two programs drift apart.
Comparison = collections.namedtuple("Comparison", "name model ours peers settings tolerance first_tolerance",
                                    defaults=((), LOSS_TOLERANCE, FIRST_TOLERANCE))


def store():
    """Where ranks meet. Whatever else is compared needs no torch here, whose import takes seconds."""
    warnings.filterwarnings("ignore", message="Failed to initialize NumPy")
    from torch.distributed import TCPStore

    return TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)


class Job:
    """The ranks of one side, alive over all rounds, blocked between them."""

    def __init__(self, program, model, side, settings):
        self.ranks = []
        self.settings = side.peer_settings
        self.store = store() if side.ranks > 1 else None
        arguments = ["--model", model, "--method", side.method, "--micro-batches", str(side.micro_batches), "--device", DEVICE, *settings]
        for rank in range(side.ranks):
            environment = dict(os.environ, OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo")
            if side.ranks > 1:
                environment.update(
                    RANK=str(rank), WORLD_SIZE=str(side.ranks), LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE=str(side.ranks),
                    MASTER_ADDR="127.0.0.1", MASTER_PORT=str(self.store.port), TORCHELASTIC_USE_AGENT_STORE="True")
            command = [program] if side.peer_settings is None else [sys.executable, f"{HERE}/training_peer.py", *side.peer_settings]
            if side.peer_settings is not None and LLAMA == "llama_tiny":  # else its memory would be less than a program's own
                self.ranks.append(forked.Forked("training_peer", [*side.peer_settings, *arguments], environment))
            else:  # no rank outlives this program
                self.ranks.append(subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *command, *arguments], stdin=subprocess.PIPE,
                                                   stdout=subprocess.PIPE, text=True, env=environment))
        self.losses = []
        self.steps = 0

    def read(self):
        """One line of every rank; the first rank's."""
        answers = []
        for number, rank in enumerate(self.ranks):
            line = rank.stdout.readline()
            if not line:
                raise SystemExit(f"rank {number} of {' '.join(map(str, rank.args))} ended; its message is above")
            answers.append(json.loads(line))
        return answers[0]

    def run(self, steps):
        """Milliseconds per step of one round."""
        before, spent = loopback_bytes(), self.processor_ms()
        for rank in self.ranks:
            rank.stdin.write(f"{steps}\n")
            rank.stdin.flush()
        self.result = self.read()
        self.processor = (self.processor_ms() - spent) / steps / len(self.ranks)
        self.result["loopback"] = (loopback_bytes() - before) / steps / len(self.ranks)
        self.result["peak_mib"] = peak_mib(self.ranks[0])
        self.losses += self.result["losses"]
        self.steps += steps
        return self.result["seconds"] / steps * 1e3

    def processor_ms(self):
        """What the ranks have used, user and system: other programs change it less than the clock."""
        ticks = 0
        for rank in self.ranks:
            with open(f"/proc/{rank.pid}/stat") as file:
                ticks += sum(int(field) for field in file.read().rsplit(")", 1)[1].split()[11:13])
        return ticks * 1e3 / os.sysconf("SC_CLK_TCK")

    def end(self):
        for rank in self.ranks:
            rank.stdin.close()
        for rank in self.ranks:
            rank.wait(timeout=60)

    def kill(self):
        for rank in self.ranks:
            if rank.poll() is None:
                rank.kill()
                rank.wait()


def loopback_bytes():
    """What all ranks together sent to each other, headers included, and whatever else used loopback."""
    with open("/proc/net/dev") as file:
        for line in file:
            if line.strip().startswith("lo:"):
                return int(line.split(":")[1].split()[8])
    return 0


def peak_mib(process):
    """The most memory that a process held at once."""
    with open(f"/proc/{process.pid}/status") as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith("VmHWM:"))


def mega(number):
    return f"{number / 1e6:.1f} MB"


LLAMA_SIZES = {"llama": (1_100_048_384, 2 * 32000 * 2048 + 2048), "llama_tiny": (204_224, 2 * 512 * 64 + 64)}


def describe_memory(comparison, job):
    """What a GPU holds: most at once, and between steps beside the formula (parameters, two moments, gradients)."""
    if not job.result.get("device_peak"):
        return
    everything, _ = parameters_of(comparison.model)
    size = 2 if "pure" in comparison.settings else 4
    say(f"    device memory: at most {mega(job.result['device_peak'])}, {mega(job.result['device_kept'])} between steps; "
        f"formula of parameters, moments and gradients {mega(4 * size * everything)}")


def parameters_of(model):
    """(all, those of the root unit) as the models of training.cpp have them."""
    if model in LLAMA_SIZES:
        return LLAMA_SIZES[model]
    if model == "gpt":
        width, root = 384, 1024 * 384 + 64 * 384 + 2 * 384
        return root + 4 * (12 * width * width + 13 * width), root
    if model == "lora":  # the trainable ones
        return 8 * 2 * 2 * 8 * 1024, 0
    if model == "qwen":
        layer = 640 * 640 * 2 + 2 * 640 * 128 + 640 + 2 * 128 + 3 * 640 * 2560 + 2 * 640
        return 32000 * 640 + 640 + 14 * layer, 32000 * 640 + 640
    if model == "qwen_lora":  # the trainable ones; the frozen ones are gathered too
        return 14 * 8 * (4 * 640 + 2 * (640 + 128) + 3 * (640 + 2560)), 0
    blocks, width = {"mlp": (8, 1024), "tiny": (64, 8)}[model]
    return blocks * 2 * (width * width + width), 0


def describe_bytes(comparison, side, job):
    """A rank's bytes per step: counted by the core, formulas of reference 3.3 for each way to do it, seen on loopback."""
    everything, root = parameters_of(comparison.model)
    m, f, size = side.micro_batches, (side.ranks - 1) / side.ranks, 4
    if side.ranks == 1:
        return
    formulas = {"all-reduce once": 2 * f * everything * size}
    if side.method == "fsdp":
        formulas = {
            "FULL_SHARD, reduce every micro-batch": f * size * (m * (2 * everything - root) + m * everything),
            "FULL_SHARD, reduce once": f * size * (m * (2 * everything - root) + everything),
            "gather once, reduce once": f * size * 2 * everything,
        }
    if side.method == "hsdp":
        formulas = {"gather twice, reduce over 2, all-reduce a half over 2": size * everything * (3 * 0.5 + 0.5)}
    counted = ""
    if "traffic" in job.result:
        traffic = job.result["traffic"]
        steps = len(job.result["losses"])
        parts = [f"{of['calls'] / steps:g} {kind} {mega(of['bytes'] / steps)}" for kind, of in traffic.items() if of["calls"]]
        counted = f"counted {mega(sum(of['bytes'] for of in traffic.values()) / steps)} ({', '.join(parts)}); "
    listed = ", ".join(f"{name} {mega(value)}" for name, value in formulas.items())
    say(f"    bytes a rank sends per step: {counted}formula: {listed}; on loopback {mega(job.result['loopback'])}"
        + (" (Gloo sends a reduce-scatter as an all-reduce, twice the formula)" if side.method == "fsdp" else ""))


def race(program, comparison, fused_is_faster):
    """Runs one comparison and prints its line; learns for later ones which AdamW is this peer's best."""
    peer_kind = comparison.model, comparison.peers[0].method
    fused = fused_is_faster.get(peer_kind)
    sides = [side for side in comparison.peers if None in (fused, side.peer_settings) or ("--fused" in side.peer_settings) == fused]
    say(f"{comparison.name}: {comparison.ours.ranks} ranks, {comparison.ours.micro_batches} micro-batches, model {comparison.model}")
    ours = Job(program, comparison.model, comparison.ours, comparison.settings)
    peers = [Job(program, comparison.model, side, comparison.settings) for side in sides]
    jobs = [ours, *peers]
    try:
        for job in jobs:
            job.ready = job.read()
        # The first round touches all memory; the next two choose the peer and the number of steps. One of each where a
        # step takes seconds.
        slow = comparison.model.startswith("qwen")
        warm_up = 1 if slow else 2
        for job in jobs:
            job.run(warm_up)
        trial = {job: job.run(warm_up) for job in jobs}
        if not slow:
            trial = {job: min(trial[job], job.run(2)) for job in jobs}
        if slow:
            say("    to begin with: " + ", ".join(f"{trial[job]:.0f} ms" + (" ours" if job is ours else "") for job in jobs))
        peer = min(peers, key=trial.get)
        side = sides[peers.index(peer)]
        if peer.settings is not None:
            fused_is_faster[peer_kind] = "--fused" in peer.settings
            for job in peers:
                say(f"    peer {' '.join(job.settings) or 'default AdamW'}: {trial[job]:.1f} ms" + (" <- raced" if job is peer else ""))
        for job in peers:
            if job is not peer:
                job.kill()
        steps = STEPS or max(1, min(MAX_STEPS, round(SECONDS * 1e3 / max(trial[ours], trial[peer]))))
        times, processor = [], []
        for number in range(ROUNDS):
            order = [ours, peer] if number % 2 == 0 else [peer, ours]
            round_times = {job: job.run(steps) for job in order}
            times.append((round_times[ours], round_times[peer]))
            processor.append((ours.processor, peer.processor))
            if slow:  # what is known when somebody ends it early
                say(f"    round {number + 1}, ours/peer: {times[-1][0]:.0f}/{times[-1][1]:.0f} ms, of the processor "
                    f"{ours.processor:.0f}/{peer.processor:.0f} ms, of memory at most {ours.result['peak_mib']:.0f}/"
                    f"{peer.result['peak_mib']:.0f} MiB a rank")

        say(f"    torch {ours.ready['torch']}, {ROUNDS} rounds of {steps} steps; ms per step, ours/peer: "
            + ", ".join(f"{a:.2f}/{b:.2f}" for a, b in times))
        say("    of the processor, a rank and step: " + ", ".join(f"{a:.0f}/{b:.0f}" for a, b in processor)
            + f"; ratio of the medians {statistics.median(b for _, b in processor) / statistics.median(a for a, _ in processor):.3f}")
        for job, its_side, name in ((ours, comparison.ours, "ours"), (peer, side, "peer")):
            say(f"  {name}: loss of step 1 {job.losses[0]:.6f}, of step {job.steps} {job.losses[-1]:.6f}; "
                f"peak {job.result['peak_mib']:.0f} MiB a rank")
            describe_bytes(comparison, its_side, job)
            describe_memory(comparison, job)
        if comparison.model == "tiny":  # in a bigger one the machine's noise is more than this
            overhead = statistics.median((a - b) * 1e3 for a, b in times) / ours.ready["units"]
            say(f"  hooks: {overhead:.1f} us per unit and step ({ours.ready['units']} units)")
        assert ours.steps == peer.steps, "both sides must have made the same number of steps"
        hold_losses(comparison, ours.losses, peer.losses)
        if comparison.ours.method != "plain" and not ours.ready["flats"] and "mixed" in comparison.settings:
            raise SystemExit(f"{comparison.name}: no flat was made, so this compares LibTorch with itself")
        if not abs(ours.losses[-1] - ours.losses[0]) > 10 * LOSS_TOLERANCE * abs(ours.losses[0]):
            raise SystemExit(f"{comparison.name}: the loss did not move, so its agreement means nothing")
        ours.end()
        peer.end()
    finally:
        for job in jobs:
            job.kill()

    ratios = [b / a for a, b in times]
    ratio = statistics.median(ratios)
    print(f"{comparison.name}\t{statistics.median(a for a, _ in times):.2f}\t{statistics.median(b for _, b in times):.2f}\t"
          f"{ratio:.3f}\t{(max(ratios) - min(ratios)) / ratio:.3f}", flush=True)


def hold_losses(comparison, ours, peer):
    """Ends the comparison where the two sides did other work: by the first step, and by the curve where that can be held."""
    differences = [abs(a - b) / abs(b) for a, b in zip(ours, peer, strict=True)]
    # `max` would pass over a NaN that is not the first.
    worst = next((each for each in differences if math.isnan(each)), max(differences))
    say(f"  losses differ by {differences[0]:.1e} relative in the first step, by at most {worst:.1e} over {len(ours)} steps")
    # Not "greater than": NaN must not pass for agreement.
    for what, got, most in (("first step", differences[0], comparison.first_tolerance), ("whole curve", worst, comparison.tolerance)):
        if most is not None and not got <= most:
            raise SystemExit(f"{comparison.name}: the two sides do not train the same: losses of the {what} differ by {got:.1e}; "
                             f"expected at most {most:g}")
    if not all(map(math.isfinite, ours + peer)):
        raise SystemExit(f"{comparison.name}: a loss is not finite")


def comparisons():
    ddp_peers = ([], ["--fused"], ["--bucket-view"], ["--fused", "--bucket-view"])
    fsdp_peers = ([], ["--fused"])
    # All four of a Qwen at once would take more memory than the machine has: so: all that step in one pass over memory.
    fused_ddp_peers = (["--fused"], ["--fused", "--bucket-view"])
    deferred = (["--defer"], ["--defer", "--fused"], ["--defer", "--keep"], ["--defer", "--keep", "--fused"])
    for suffix, model in (("", "mlp"), ("_gpt", "gpt")):
        for k in (1, 8):
            for method, peers in (("fsdp", fsdp_peers), ("ddp", ddp_peers)):
                yield Comparison(f"{method}_k{k}{suffix}", model, Side(method, k, 2), [Side(method, k, 2, peer) for peer in peers])
        yield Comparison(f"fsdp_k8_deferred{suffix}", model, Side("fsdp", 8, 2), [Side("fsdp", 8, 2, peer) for peer in deferred])
        yield Comparison(f"fsdp_vs_ddp_k8{suffix}", model, Side("fsdp", 8, 2), [Side("ddp", 8, 2)])
        yield Comparison(f"fsdp_w1_vs_plain{suffix}", model, Side("fsdp", 1, 1), [Side("plain", 1, 1)])
    yield Comparison("hsdp_k1", "mlp", Side("hsdp", 1, 4), [Side("hsdp", 1, 4, peer) for peer in fsdp_peers])
    yield Comparison("lora_ddp_recompute", "lora", Side("ddp", 1, 2), [Side("ddp", 1, 2, peer) for peer in ddp_peers])
    for name, model, method, peers in (("lora_fsdp_k4", "qwen_lora", "fsdp", fsdp_peers), ("full_fsdp_k4", "qwen", "fsdp", fsdp_peers),
                                       ("full_ddp_k4", "qwen", "ddp", fused_ddp_peers)):
        yield Comparison(name, model, Side(method, 4, 2), [Side(method, 4, 2, peer) for peer in peers], ["--folder", QWEN])
    yield Comparison("fsdp_w1_vs_plain_tiny", "tiny", Side("fsdp", 1, 1), [Side("plain", 1, 1)])


def comparisons_of_llama():
    """A Llama of 1.1 billion parameters in bf16 on one device: without and with the core, against Python as it is and compiled.
    One setting of the peer each, since all its settings would be on the device at once.
    Where all is bf16 any two programs drift apart (on an H100 4.5e-2 after 58 steps, Python's own two likewise), so only the
    first step is held there; a compiled block rounds to bf16 in fewer places."""
    for precision, method, tolerance in (("pure", "plain", None), ("mixed", "fsdp", 5e-3)):
        # In small: traced as it is compiled, without a compiler's minute.
        for name, compile in (("eager", []), ("compile", ["--compile", "aot_eager" if LLAMA == "llama_tiny" else "inductor"])):
            first = FIRST_TOLERANCE if precision == "mixed" and not compile else 5e-3
            yield Comparison(f"llama_{precision}_vs_{name}", LLAMA, Side(method, 1, 1), [Side(method, 1, 1, ["--fused", *compile])],
                             ["--precision", precision], tolerance, first)


def chosen_comparisons(pattern):
    """Those of the device; on a CPU the Llama's only in small."""
    made = list(comparisons()) if DEVICE == "cpu" else []
    if DEVICE != "cpu" or LLAMA == "llama_tiny":
        made += comparisons_of_llama()
    return [comparison for comparison in made if re.search(pattern, comparison.name)]


def main():
    if sys.argv[1] == "--names":
        print("\n".join(comparison.name for comparison in chosen_comparisons("")))
        return
    program, pattern = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    chosen = chosen_comparisons(pattern)
    say(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; one thread per rank; "
        "columns: name, ours [ms per step], peer [ms per step], ratio peer/ours, spread of the ratio")
    fused_is_faster = {}
    if any(comparison.model.startswith("qwen") for comparison in chosen) and not os.path.exists(QWEN + "/adapter"):
        subprocess.run([sys.executable, os.path.join(HERE, "training_peer.py"), "--make-qwen", QWEN], check=True)
    failed = []
    for comparison in chosen:  # one that fails does not lose the others' figures
        try:
            race(program, comparison, fused_is_faster)
        except (Exception, SystemExit) as error:
            say(f"{comparison.name} failed: {error or type(error).__name__}")
            failed.append(comparison.name)
    if failed:
        raise SystemExit(f"{len(failed)} of {len(chosen)} comparisons failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
