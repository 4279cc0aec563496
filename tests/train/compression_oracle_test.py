# SPDX-License-Identifier: Apache-2.0
# Compressed gradients against PyTorch's hooks (fp16, bf16, PowerSGD) of the very torch that is linked.
# Both train the same model from the same values on the same data; the parameters after ten steps must agree.
# The last cases are wrong on purpose and must be told apart, so that agreement means something.
#   compression_oracle_test.py PROGRAM    PROGRAM: sealift-compression-oracle; run with the Python of that torch
import collections
import os
import sys
import tempfile
from datetime import timedelta

import torch
import torch.distributed
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn import functional as F

sys.dont_write_bytecode = True  # no folder of caches among the sources
from oracle_test import read, run_both

IN, WIDTH, OUT, ROWS, STEPS = 20, 48, 7, 12, 10
Case = collections.namedtuple(
    "Case", "name compression bucket_bytes rank start rate feedback warm epsilon seed batch",
    defaults=("powersgd", 26214400, 1, 2, 2, 1, 1, 0, 0, 0))
CASES = [
    Case("plain", "none"),
    Case("fp16", "fp16"),
    Case("bf16", "bf16"),
    Case("bf16_buckets", "bf16", bucket_bytes=8000),
    Case("rank1"),
    Case("rank2", rank=2, seed=7),
    Case("rank4_by_qr", rank=4),
    Case("buckets", rank=2, bucket_bytes=10000),
    Case("cold", rank=2, warm=0),
    Case("cold_buckets", rank=1, warm=0, bucket_bytes=10000),
    Case("no_feedback", rank=2, feedback=0),
    Case("epsilon", rank=2, epsilon=1e-3),
    Case("low_rate", rank=3, rate=0.5),
    Case("batched", rank=2, batch=1),
    Case("late", rank=2, start=5),
    Case("wrong_dtype", "bf16"),
    Case("wrong_rank", rank=2),
    Case("wrong_seed"),
    Case("wrong_start", start=3),
]
# What ours is told instead.
WRONG = {"wrong_dtype": {"compression": "fp16"}, "wrong_rank": {"rank": 1}, "wrong_seed": {"seed": 1},
         "wrong_start": {"start": 2}}


def tolerance(case, world):
    """The largest difference, as a share of the largest parameter."""
    # Two ranks: dividing by 2 is exact on either side of the cast, so only fp16's subnormals may be rounded twice.
    # Three: ours divides in fp32 before the cast, PyTorch in the wire's dtype after it, so each gradient of each step
    # may differ by an ulp.
    if case.compression in ("none", "bf16", "fp16"):
        ulp = {"none": 1e-6, "bf16": 2**-7, "fp16": 2**-10}[case.compression]
        return ulp if world == 3 else 1e-7 if case.compression == "fp16" else 0
    return 5e-6


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        sizes = [IN, WIDTH, WIDTH, WIDTH, OUT]
        for i, (a, b) in enumerate(zip(sizes, sizes[1:])):
            self.add_module(f"layer{i}", nn.Linear(a, b))
        phase = 0.0
        with torch.no_grad():
            for parameter in self.parameters():
                phase += 0.37
                parameter.copy_(torch.sin(torch.arange(parameter.numel()).view(parameter.shape) * 0.91 + phase) * 0.3)

    def forward(self, x):
        for i, layer in enumerate(self.children()):
            x = layer(torch.tanh(x) if i else x)
        return x


def one_at_a_time(state, bucket):
    """Over Gloo PyTorch's hook waits for its second and third collective in the threads that should run them, so buckets
    that are in flight together hang."""
    future = powerSGD_hook.powerSGD_hook(state, bucket)
    future.wait()
    return future


def hook_of(case):
    if case.compression == "powersgd":
        state = powerSGD_hook.PowerSGDState(
            None, matrix_approximation_rank=int(case.rank), start_powerSGD_iter=int(case.start),
            min_compression_rate=float(case.rate), use_error_feedback=case.feedback == "1",
            warm_start=case.warm == "1", orthogonalization_epsilon=float(case.epsilon), random_seed=int(case.seed),
            batch_tensors_with_same_shape=case.batch == "1")
        return state, one_at_a_time
    return None, {"fp16": default_hooks.fp16_compress_hook, "bf16": default_hooks.bf16_compress_hook,
                  "none": default_hooks.allreduce_hook}[case.compression]


def train(case, out):
    rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
    net = Net()
    model = nn.parallel.DistributedDataParallel(net, bucket_cap_mb=int(case.bucket_bytes) / 2**20)
    model.register_comm_hook(*hook_of(case))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for step in range(STEPS):
        optimizer.zero_grad()
        first = (step * world + rank) * ROWS
        x = torch.sin(torch.arange(first * IN, (first + ROWS) * IN).view(ROWS, IN) * 0.7)
        y = torch.cos(torch.arange(first * OUT, (first + ROWS) * OUT).view(ROWS, OUT) * 0.3)
        F.mse_loss(model(x), y).backward()
        optimizer.step()
    if rank == 0:
        values = torch.cat([parameter.detach().flatten() for parameter in net.parameters()])
        with open(os.path.join(out, case.name), "wb") as file:
            file.write(bytes(values.untyped_storage()))


def peer(cases, out):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", timeout=timedelta(seconds=60))
    with open(cases) as file:
        for line in file:
            train(Case(*line.split()), out)
    torch.distributed.destroy_process_group()
    sys.stdout.flush()
    os._exit(0)  # as in oracle_test.py


def main():
    commands = {"ours": [sys.argv[1]], "theirs": [sys.executable, __file__, "--peer"]}
    failed = []
    with tempfile.TemporaryDirectory() as work:
        for world in (2, 3):
            folders = run_both(commands, world, CASES, WRONG, work)
            for case in CASES:
                if case.name == "wrong_dtype" and world == 3:
                    continue  # within the tolerance there
                ours, theirs = (read(os.path.join(folders[side], case.name), torch.float32)
                                for side in ("ours", "theirs"))
                difference = ((ours - theirs).abs().max() / theirs.abs().max()).item()
                limit = tolerance(case, world)
                agree = difference <= limit
                good = agree != (case.name in WRONG)
                failed += [] if good else [f"{case.name} over {world} ranks"]
                print(f"{'ok' if good else 'FAILED'}: {case.name} over {world} ranks: {difference:.1e}, limit {limit:.1e}"
                      f"{', wrong on purpose' if case.name in WRONG else ''}")
    if failed:
        sys.exit("FAILED: " + ", ".join(failed))


if __name__ == "__main__":
    if sys.argv[1] == "--peer":
        peer(sys.argv[2], sys.argv[3])
    else:
        main()
