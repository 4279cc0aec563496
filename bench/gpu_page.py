# SPDX-License-Identifier: Apache-2.0
# The page of bench/gpu.sh: what each part said, the device, the versions, and the Llama's speed as TFLOP/s.
# Called by gpu.sh after each part, with the folder of what the parts wrote; the page goes to stdout.
# Every figure is of this run. A part that failed or was not run is said to have, and a run without a GPU claims none.
# What earlier machines gave is in gpu_figures.tsv and ends each page of a GPU.
#   gpu_page.py FOLDER DEVICE TINY
#   gpu_page.py --earlier              bench/GPU.md as long as no GPU has run gpu.sh since
import datetime
import importlib.metadata
import json
import pathlib
import platform
import subprocess
import sys
import textwrap

if "cuda" in sys.argv[2:3]:  # it takes seconds, and the page is written after each part
    import torch

# Dense bf16 with fp32 sums, TFLOP/s, from NVIDIA's data sheets; a device that is not here gets no share of its peak.
PEAKS = {"H200": 989.4, "H100 NVL": 835.5, "H100 PCIe": 756.0, "H100": 989.4, "A100": 312.0, "L40S": 362.0, "B200": 2250.0}
# Of training.cpp's kLlama1B: vocabulary, context, layers, width, key width, inner width, sequences.
V, T, L, W, K, I, ROWS = 32000, 2048, 22, 2048, 256, 5632, 2


def flops_per_token():
    """bench/llama.hpp has the same formula, of the PaLM paper's appendix B."""
    products = L * (2 * W * W + 2 * W * K + 3 * W * I) + V * W
    return 6 * products + 12 * L * W * T


def read(folder, name):
    path = folder / name
    return path.read_text() if path.exists() else ""


def verdict(folder, name):
    code = read(folder, f"{name}.code").strip()
    return {"0": "passed", "77": "**left out**", "": "**was not run**"}.get(code, f"**failed** (exit status {code})")


def block(text, last=60):
    lines = []
    for line in text.strip().splitlines()[-last:]:
        lines += textwrap.wrap(line, 118, subsequent_indent="      ", replace_whitespace=False) or [""]
    return "```text\n" + "\n".join(lines) + "\n```\n" if lines else ""


def versions(device):
    yield "torch", f"{importlib.metadata.version('torch')}, Python {platform.python_version()}"
    if device == "cuda":
        properties = torch.cuda.get_device_properties(0)
        yield "device", (f"{torch.cuda.device_count()} x {properties.name}, {properties.total_memory / 1e9:.0f} GB, "
                         f"capability {properties.major}.{properties.minor}")
        yield "CUDA, NCCL, cuDNN", f"{torch.version.cuda}, {'.'.join(map(str, torch.cuda.nccl.version()))}, {torch.backends.cudnn.version()}"
        query = ["nvidia-smi", "--query-gpu=driver_version,power.limit,clocks.max.sm", "--format=csv,noheader", "--id=0"]
        try:
            yield "driver, power limit, clock", subprocess.run(query, capture_output=True, text=True, check=True).stdout.strip()
        except (OSError, subprocess.CalledProcessError):
            yield "driver", "nvidia-smi is not here"
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True).stdout.strip()
    yield "this project", commit or "not a checkout"


def earlier():
    """The figures of gpu_figures.tsv: sections as there, each row with the command that gives it."""
    lines = (pathlib.Path(__file__).parent / "gpu_figures.tsv").read_text().splitlines()
    for line in lines:
        if line.startswith("# "):
            continue
        if line.startswith("## "):
            yield f"\n{line}\n"
        elif "\t" not in line:
            if line:
                yield textwrap.fill(line, 118, break_long_words=False) + "\n"
        else:
            fields = line.split("\t")
            yield "| " + " | ".join(fields) + " |"
            if fields[0] == "what":
                yield "|---" * len(fields) + "|"


def llama_rows(folder, device, tiny):
    name = torch.cuda.get_device_name(0) if device == "cuda" else ""
    peak = next((value for key, value in PEAKS.items() if key in name), None)
    for line in read(folder, "llama.out").splitlines():
        what, ours, peer, ratio, spread = line.split("\t")
        speed = ["", ""]
        if device == "cuda" and not tiny:
            for side, milliseconds in enumerate((ours, peer)):
                tflops = flops_per_token() * ROWS * T / float(milliseconds) / 1e9
                speed[side] = f" ({tflops:.0f} TFLOP/s" + (f", {tflops / peak:.0%} of {peak:g}" if peak else "") + ")"
        yield f"| `{what}` | {ours}{speed[0]} | {peer}{speed[1]} | {ratio} | {spread} |"


def peer_rows(folder, name):
    """A row of peers.py each; what failed says why."""
    for line in read(folder, f"{name}.out").splitlines():
        run = json.loads(line)
        start = f"| `{run['name']}` | {run['ranks']} | {run['rows']} x {run['time']} | {run['precision']} "
        if "failed" in run:
            why = run["failed"].replace("|", "/")
            yield f"{start}| **failed**: {why} | | | |"
        else:
            yield f"{start}| {run['ms_per_step']} | {run['tokens_per_second']:,} | {run['peak_mib']:,} | {run['first_loss']:.6f} |"


def main():
    if sys.argv[1] == "--earlier":
        print("# What ran on a GPU\n\nMade by `bench/gpu_page.py --earlier`; `bench/gpu.sh` writes it anew where there is a GPU.")
        print("\n".join(earlier()))
        return
    folder, device, tiny = pathlib.Path(sys.argv[1]), sys.argv[2], bool(sys.argv[3])
    print("# What ran on a GPU\n" if device == "cuda" else "# A trial without a GPU\n")
    print(f"Written by `bench/gpu.sh`, {datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC.")
    if device != "cuda" or tiny:
        print("\n**Nothing here is a measurement**: the script ran " + ("in small" if tiny else "") + (" on a CPU" if device != "cuda" else "")
              + " to show that it works.")
    print("\n| | |\n|---|---|")
    for key, value in versions(device):
        print(f"| {key} | {value} |")
    print(f"\n## Tests: {verdict(folder, 'tests')}\n")
    print(block(read(folder, "tests.out") + read(folder, "tests.err")))
    for precision in ("fp32", "mixed"):
        name = f"trainer_{precision}"
        print(f"## sealift-train on a CPU and here, {precision}: {verdict(folder, name)}\n")
        print(block(read(folder, f"{name}.out")))
    size = "204 thousand" if tiny else "1.1 billion"
    print(f"## A Llama of {size} parameters against Python: {verdict(folder, 'llama')}\n")
    print("Milliseconds per step; ratio is peer ÷ ours. How to read it: [README.md](README.md#on-a-gpu).\n")
    print("| name | ours | peer | ratio | spread |\n|---|---|---|---|---|")
    for row in llama_rows(folder, device, tiny):
        print(row)
    print("\n" + block(read(folder, "llama.err")))
    for part in sorted(folder.glob("peers*.code")):
        name = part.stem
        print(f"## What Python does by itself, {name}: {verdict(folder, name)}\n")
        print("By `bench/peers.py`, each way to train, eager or with each layer compiled; memory of one rank.\n")
        print("| name | ranks | rows a step | precision | ms a step | tokens a second | MiB at most | first loss |")
        print("|---|---|---|---|---|---|---|---|")
        for row in peer_rows(folder, name):
            print(row)
        print("\n" + block(read(folder, f"{name}.err"), last=5))
    if device == "cuda":
        print("\n".join(earlier()))


main()
