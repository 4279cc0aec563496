# SPDX-License-Identifier: Apache-2.0
# The training core against Python's DDP and fully_shard of the very torch that it links, ranks as processes over Gloo.
# Both train the same model from the same values on the same data; losses, gradient norms and final parameters must agree.
# The last cases are wrong on purpose and must be told apart, so that agreement means something.
#   oracle_test.py PROGRAM    PROGRAM: sealift-oracle; run with the Python of that torch
import collections
import contextlib
import os
import subprocess
import sys
import tempfile
import warnings

warnings.filterwarnings("ignore", message="Failed to initialize NumPy")

from datetime import timedelta

import torch
import torch.distributed
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn import functional as F

TOLERANCE = 1e-5  # relative: of each loss, of each norm, of each parameter's 2-norm
SECONDS = 240  # for one world; a hang is an error
VOCABULARY, CONTEXT, WIDTH, HEADS, HIDDEN, LAYERS = 13, 5, 12, 3, 15, 2
BATCH, STEPS = 12, 6

Case = collections.namedtuple(
    "Case", "name method shard_size reshard_after_forward micro_batches clip learning_rate",
    defaults=(0, 1, 1, 1e9, 1e-2))
CASES = {
    2: [
        Case("ddp", "ddp"),
        Case("ddp_accumulate_clip", "ddp", micro_batches=3, clip=0.3),
        Case("fsdp", "fsdp"),
        Case("fsdp_clip", "fsdp", clip=0.3),
        Case("fsdp_accumulate", "fsdp", micro_batches=3),
        Case("fsdp_keep", "fsdp", reshard_after_forward=0),
        Case("fsdp_keep_accumulate_clip", "fsdp", reshard_after_forward=0, micro_batches=3, clip=0.3),
        Case("wrong_learning_rate", "fsdp"),
        Case("wrong_clip", "ddp", clip=0.3),
    ],
    4: [
        Case("ddp_accumulate_clip", "ddp", micro_batches=3, clip=0.3),
        Case("fsdp", "fsdp"),
        Case("fsdp_accumulate_clip", "fsdp", micro_batches=3, clip=0.3),
        Case("fsdp_keep", "fsdp", reshard_after_forward=0),
        Case("hsdp", "hsdp", shard_size=2),
        Case("hsdp_accumulate", "hsdp", shard_size=2, micro_batches=3),
        Case("hsdp_keep_accumulate_clip", "hsdp", shard_size=2, reshard_after_forward=0, micro_batches=3, clip=0.3),
    ],
}
# What ours is told instead: 1 % off, the least that anybody would call wrong.
WRONG = {"wrong_learning_rate": {"learning_rate": 1.01e-2}, "wrong_clip": {"clip": 0.303}}


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.frozen = nn.Parameter(torch.ones(WIDTH), requires_grad=False)
        self.norm = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.up = nn.Linear(WIDTH, HIDDEN)
        self.down = nn.Linear(HIDDEN, WIDTH)
        self.idle = nn.Linear(3, 5)  # never called

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = self.qkv(self.norm(x) * self.frozen).view(batch, length, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        middle = x + self.out(mixed.transpose(1, 2).reshape(batch, length, WIDTH))
        return middle + self.down(torch.tanh(self.up(middle)))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        for i in range(LAYERS):
            self.add_module(f"layer{i}", Layer())
        self.spare = Layer()  # never called
        self.norm = nn.LayerNorm(WIDTH)
        phase = 0.0
        with torch.no_grad():
            for parameter in self.parameters():
                phase += 0.37
                parameter.copy_(torch.sin(torch.arange(parameter.numel()).view(parameter.shape) * 0.91 + phase) * 0.3)

    def forward(self, tokens):
        hidden = self.tokens(tokens)
        for i in range(LAYERS):
            hidden = getattr(self, f"layer{i}")(hidden)
        return F.linear(self.norm(hidden), self.tokens.weight)


def batch_of(step):
    rows, columns = torch.arange(BATCH).unsqueeze(1), torch.arange(CONTEXT + 1).unsqueeze(0)
    return (rows * 5 + columns * (columns + 3) + step * 7 + rows * columns) % VOCABULARY


def whole(tensor):
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def train(case, out):
    rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
    net = Net()
    names = [(name, parameter.numel()) for name, parameter in net.named_parameters()]
    if case.method == "ddp":
        model = nn.parallel.DistributedDataParallel(net, find_unused_parameters=True)
    else:
        shape = (world,) if case.method == "fsdp" else (world // int(case.shard_size), int(case.shard_size))
        mesh = torch.distributed.init_device_mesh("cpu", shape, mesh_dim_names=("replicate", "shard")[-len(shape):])
        for name, child in net.named_children():
            if isinstance(child, Layer):
                fully_shard(child, mesh=mesh, reshard_after_forward=bool(int(case.reshard_after_forward)))
        model = fully_shard(net, mesh=mesh)
    optimizer = torch.optim.AdamW(net.parameters(), lr=float(case.learning_rate))

    micro_batches = int(case.micro_batches)
    rows = BATCH // world // micro_batches
    losses, norms = torch.zeros(STEPS, dtype=torch.float64), torch.zeros(STEPS, dtype=torch.float64)
    for step in range(STEPS):
        optimizer.zero_grad()
        for micro in range(micro_batches):
            is_last = micro + 1 == micro_batches
            if case.method != "ddp":
                model.set_requires_gradient_sync(is_last)
            with model.no_sync() if case.method == "ddp" and not is_last else contextlib.nullcontext():
                sequences = batch_of(step).narrow(0, (rank * micro_batches + micro) * rows, rows)
                logits = model(sequences[:, :CONTEXT])
                loss = F.cross_entropy(logits.view(-1, VOCABULARY), sequences[:, 1:].reshape(-1)) / micro_batches
                loss.backward()
            losses[step] += loss.detach().double() / world
        norms[step] = whole(nn.utils.clip_grad_norm_(net.parameters(), float(case.clip)))
        optimizer.step()
    torch.distributed.all_reduce(losses)
    parameters = torch.cat([whole(parameter.detach()).flatten() for parameter in net.parameters()])

    if rank == 0:
        with open(os.path.join(out, case.name + ".names"), "w") as file:
            file.writelines(f"{name} {numel}\n" for name, numel in names)
        for kind, values in (("losses", losses), ("norms", norms), ("parameters", parameters)):
            with open(os.path.join(out, f"{case.name}.{kind}"), "wb") as file:
                file.write(bytes(values.untyped_storage()))


def peer(cases, out):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", timeout=timedelta(seconds=60))
    with open(cases) as file:
        for line in file:
            train(Case(*line.split()), out)
    torch.distributed.destroy_process_group()
    # Not through the interpreter's end: a thread of torch's that asks for the interpreter's lock meanwhile is ended by
    # Python inside a noexcept function, which aborts the process now and then. All files are closed by here.
    sys.stdout.flush()
    os._exit(0)


class Ranks:
    """The ranks of one side in one world, and the store where they meet."""

    def __init__(self, command, world):
        self.command = command
        # Each its own: ranks that read the addresses of an earlier world would dial those.
        self.store = torch.distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        self.processes = [
            subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *command], env=dict(
                os.environ, OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo", RANK=str(rank), WORLD_SIZE=str(world),
                LOCAL_RANK=str(rank), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(self.store.port),
                TORCHELASTIC_USE_AGENT_STORE="True"))
            for rank in range(world)]

    def wait(self):
        try:
            for rank, process in enumerate(self.processes):
                if process.wait(timeout=SECONDS) != 0:
                    sys.exit(f"FAILED: rank {rank} of {' '.join(self.command)} exited with {process.returncode}")
        finally:
            for process in self.processes:
                if process.poll() is None:
                    process.kill()
                    process.wait()


def read(path, dtype):
    with open(path, "rb") as file:
        return torch.frombuffer(bytearray(file.read()), dtype=dtype).double()


def compare(name, ours, theirs):
    """The largest relative difference of each kind, and the parameter with the largest."""
    with open(os.path.join(ours, name + ".names")) as a, open(os.path.join(theirs, name + ".names")) as b:
        names = a.read()
        if names != b.read():
            sys.exit(f"FAILED: {name}: the two models do not have the same parameters")
    result = {}
    for kind in ("losses", "norms"):
        a, b = (read(os.path.join(side, f"{name}.{kind}"), torch.float64) for side in (ours, theirs))
        result[kind] = ((a - b).abs() / b.abs()).max().item()
    a, b = (read(os.path.join(side, name + ".parameters"), torch.float32) for side in (ours, theirs))
    sizes = [int(line.split()[1]) for line in names.splitlines()]
    differences = [((x - y).norm() / y.norm()).item() for x, y in zip(a.split(sizes), b.split(sizes), strict=True)]
    result["parameters"] = max(differences)
    result["worst"] = names.splitlines()[differences.index(max(differences))].split()[0]
    return result


def run_both(commands, world, cases, wrong, work):
    """Runs each side's command on `world` ranks with its cases; the folders of what they wrote. Ours is told what is `wrong`."""
    folders = {}
    for side, command in commands.items():
        folders[side] = os.path.join(work, f"{side}{world}")
        os.mkdir(folders[side])
        path = folders[side] + ".cases"
        with open(path, "w") as file:
            for case in cases:
                told = case._replace(**wrong.get(case.name, {})) if side == "ours" else case
                file.write(" ".join(map(str, told)) + "\n")
        Ranks([*command, path, folders[side]], world).wait()
    return folders


def main():
    commands = {"ours": [sys.argv[1]], "theirs": [sys.executable, __file__, "--peer"]}
    failed = []
    with tempfile.TemporaryDirectory() as work:
        for world, cases in CASES.items():
            folders = run_both(commands, world, cases, WRONG, work)
            for case in cases:
                result = compare(case.name, folders["ours"], folders["theirs"])
                # Not "greater than": NaN must not pass for agreement.
                agree = all(result[kind] <= TOLERANCE for kind in ("losses", "norms", "parameters"))
                good = agree != (case.name in WRONG)
                print(f"{'ok    ' if good else 'FAILED'} {world} ranks {case.name}: losses {result['losses']:.1e} "
                      f"norms {result['norms']:.1e} parameters {result['parameters']:.1e} ({result['worst']})", flush=True)
                if not good:
                    failed.append(case.name)
    if failed:
        sys.exit(f"FAILED: {', '.join(failed)}; within {TOLERANCE:g} is the same, and what is wrong on purpose must differ")


if __name__ == "__main__":  # compression_oracle_test.py takes run_both and read from here
    if sys.argv[1] == "--peer":
        peer(*sys.argv[2:])
    else:
        main()
