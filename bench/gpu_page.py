# SPDX-License-Identifier: Apache-2.0
# The page of bench/gpu.sh: what each part said, the device, the versions, and the Llama's speed as TFLOP/s.
# Called by gpu.sh after each part, with the folder of what the parts wrote; the page goes to stdout.
# Every figure is of this run. A part that failed or was not run is said to have, and a run without a GPU claims none.
# What earlier machines gave is in gpu_figures.tsv and ends each page of a GPU.
#   gpu_page.py FOLDER DEVICE TINY
#   gpu_page.py --earlier              bench/GPU.md as long as no GPU has run gpu.sh since
import datetime
import importlib.metadata
import pathlib
import platform
import subprocess
import sys
import textwrap

sys.dont_write_bytecode = True
from gpu_tables import block, collectives, read, tuning, verdict  # noqa: E402

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
        if line.count("\t") != 4:  # cut by a kill
            continue
        what, ours, peer, ratio, spread = line.split("\t")
        speed = ["", ""]
        if device == "cuda" and not tiny:
            for side, milliseconds in enumerate((ours, peer)):
                tflops = flops_per_token() * ROWS * T / float(milliseconds) / 1e9
                speed[side] = f" ({tflops:.0f} TFLOP/s" + (f", {tflops / peak:.0%} of {peak:g}" if peak else "") + ")"
        yield f"| `{what}` | {ours}{speed[0]} | {peer}{speed[1]} | {ratio} | {spread} |"


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
    for name, what in (("trainer_fp32", "on a CPU and here, fp32"), ("trainer_mixed", "on a CPU and here, mixed"),
                       ("trainer_shared", "on ranks that share a device")):
        print(f"## sealift-train {what}: {verdict(folder, name)}\n")
        print(block(read(folder, f"{name}.out")))
    print("\n".join(collectives(folder, device)))
    size = "204 thousand" if tiny else "1.1 billion"
    print(f"## A Llama of {size} parameters against Python: {verdict(folder, 'llama')}\n")
    print("Milliseconds per step; ratio is peer ÷ ours. How to read it: [README.md](README.md#on-a-gpu).\n")
    print("| name | ours | peer | ratio | spread |\n|---|---|---|---|---|")
    for row in llama_rows(folder, device, tiny):
        print(row)
    print("\n" + block(read(folder, "llama.err")))
    for part in sorted(path.stem for path in folder.glob("tuning*.code")) or ["tuning"]:
        print("\n".join(tuning(folder, part, device)))
    if device == "cuda":
        print("\n".join(earlier()))


main()
