# SPDX-License-Identifier: Apache-2.0
# What gpu_page.py makes of a part: whether it passed, what it said, and tables of the JSON lines of fine_tuning.py and
# collectives.py. `folder`: what gpu.sh kept, NAME.out, NAME.err and NAME.code of each part.
import json
import sys
import textwrap


def read(folder, name):
    path = folder / name
    return path.read_text() if path.exists() else ""


# Exit statuses of limited.py itself, not of the part.
ENDINGS = {"124": "not done in time", "127": "a program is missing", "137": "killed", "139": "crashed", "143": "told to end", "130": "told to end"}


def verdict(folder, name):
    code = read(folder, f"{name}.code").strip()
    known = {"0": "passed", "77": "**left out**", "": "**was not run**"}
    return known.get(code, f"**failed** ({ENDINGS.get(code, 'exit status ' + code)})")


def block(text, last=60):
    lines = []
    for line in text.strip().splitlines()[-last:]:
        lines += textwrap.wrap(line, 118, subsequent_indent="      ", replace_whitespace=False) or [""]
    return "```text\n" + "\n".join(lines) + "\n```\n" if lines else ""


def lines_of(folder, name):
    """The JSON lines of a part; one that was cut by a kill is left out."""
    for line in read(folder, f"{name}.out").splitlines():
        try:
            yield json.loads(line)
        except ValueError:
            print(f"gpu_page.py: {name}.out has a line that is no JSON", file=sys.stderr)


def ours_for(runs, run):
    """Our run of the same work: the same tuner; its method for theirs."""
    tuner, method = run["name"].split("_")[0], run["name"].split("_", 1)[1].rsplit("_", 1)[0]
    name = f"{tuner}_{'fsdp' if method in ('fsdp1', 'fully_shard') else method}_ours"
    return next((each for each in runs if each["name"] == name), {})


def tuning_rows(runs):
    """A row for each way to train, of both sides; what failed says why. The ratio is ours ÷ this."""
    for run in runs:
        start = f"| `{run['name']}` | {run['ranks']} | {run['rows']} x {run['time']} | {run['precision']} "
        why = f"**failed**: {run['failed'].replace('|', '/')}" if "failed" in run else ""
        if "ms_per_step" not in run:
            yield f"{start}| {why} | | | | |"
            continue
        ours = ours_for(runs, run).get("tokens_per_second")
        ratio = f"{ours / run['tokens_per_second']:.2f}" if ours and not run["name"].endswith("_ours") else ""
        yield (f"{start}| {run['ms_per_step']} | {run['tokens_per_second']:,} | {run['peak_mib']:,} | {run['first_loss']:.7f} "
               f"| {ratio}{why} |")


def tuning(folder, part, device):
    own = part == "tuning_own"
    yield f"## Fine-tuning, {'with own kernels and without' if own else 'ours and Python' + chr(39) + 's'}, {part}: {verdict(folder, part)}\n"
    yield ("`sealift-train sft` by LibTorch's kernels (`ours`), then with `own_kernels = true` (`own`), on the same rows; losses are held"
           " equal. Ratio: tokens a second, ours ÷ this; below 1 own kernels are faster.\n" if own else
           "`sealift-train sft` and `bench/peers.py` on one model folder and the same rows; first losses are held equal. Memory of one"
           " rank. Ratio: tokens a second, ours ÷ this; above 1 ours is faster.\n")
    yield "| name | ranks | rows a step | precision | ms a step | tokens a second | MiB at most | first loss | ratio |"
    yield "|---" * 9 + "|"
    runs = list(lines_of(folder, part))
    yield from tuning_rows(runs)
    profiled = [run for run in runs if "profile" in run]
    if profiled:
        kinds = (("kernels", "copies and fills", "waits for the GPU", "GPU busy") if device == "cuda" else
                 ("operators (a CPU has no kernels)", "copies among them", "reads of a number", "time within operators"))
        yield f"\nOf a step under LibTorch's profiler:\n\n| name | {' | '.join(kinds)} |\n{'|---' * 5}|"
        for run in profiled:
            counts = run["profile"]
            yield f"| `{run['name']}` | {counts['launches']:g} | {counts['copies']:g} | {counts['waits']:g} | {counts['busy']:.0%} |"
    yield "\n" + block(read(folder, f"{part}.err"), last=5)


def collectives(folder, device):
    yield f"## Ranks that share {'one GPU, over NCCL' if device == 'cuda' else 'a CPU, over Gloo'}: {verdict(folder, 'collectives')}\n"
    yield "Over sockets of the loopback: rates are those of sockets, and none of a machine's links.\n"
    yield "| collective | ranks | MiB | ms | GB/s of the tensor | numbers |\n|---|---|---|---|---|---|"
    for run in lines_of(folder, "collectives"):
        if "failed" in run:
            yield f"| `{run['name']}` | {run['ranks']} | **failed**: {run['failed'].replace('|', '/')} | | | |"
        else:
            right = f"**{run['wrong']} are wrong**" if run["wrong"] else "right"
            yield f"| `{run['name']}` | {run['ranks']} | {run['mib']:g} | {run['ms']} | {run['gb_per_second']} | {right} |"
    yield "\n" + block(read(folder, "collectives.err"), last=5)
