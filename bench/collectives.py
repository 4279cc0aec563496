#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Collectives of several ranks on one GPU over NCCL, or on the CPU over Gloo: whether each number is right, and how fast.
# Called by gpu.sh. A JSON line each: gigabytes of the whole tensor a second (not of what a link carried), and how many
# numbers are wrong; exit status 1 if any is, or if a rank failed.
#   collectives.py --device cuda|cpu [--ranks 2,4] [--mib 0.004,4,64] [--rounds 20] [--timeout 300]
# NCCL refuses ranks that share a GPU of one host, so each says that it is another (NCCL_HOSTID), and they talk over sockets of
# the loopback: results are NCCL's own, rates are those of such sockets and none of a machine's links.
import argparse
import json
import os
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import peers  # noqa: E402

KINDS = ("all_reduce", "all_gather", "reduce_scatter")
LARGEST = 64  # of the numbers that are added, so that each sum of up to 4 ranks is exact in bf16's 8 bits


def numbers(rank, count, dtype, device):
    """Whole numbers that differ by rank and place."""
    import torch

    return ((torch.arange(count, device=device) * 7 + rank * 13) % LARGEST).to(dtype)


def expected(kind, rank, world, count, dtype, device):
    import torch

    parts = [numbers(each, count, dtype, device) for each in range(world)]
    if kind == "all_gather":
        return torch.cat(parts)
    total = sum(part.double() for part in parts).to(dtype)
    return total if kind == "all_reduce" else total.chunk(world)[rank]


def once(kind, given, world):
    """The collective, its result, and what it has to have ended."""
    import torch
    import torch.distributed as distributed

    if kind == "all_reduce":
        result = given.clone()
        return lambda: distributed.all_reduce(result), result
    size = given.numel() * world if kind == "all_gather" else given.numel() // world
    result = torch.full((size,), float("nan"), dtype=given.dtype, device=given.device)
    call = distributed.all_gather_into_tensor if kind == "all_gather" else distributed.reduce_scatter_tensor
    return lambda: call(result, given), result


def run_rank(options, store):
    """All collectives of one world; the first rank prints what all have seen."""
    import torch
    import torch.distributed as distributed

    rank, world, cuda = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), options.device == "cuda"
    os.environ.update(NCCL_HOSTID=f"sealift-bench-{rank}", NCCL_SOCKET_IFNAME="lo", NCCL_IB_DISABLE="1")
    device = torch.device("cuda", 0) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    distributed.init_process_group("nccl" if cuda else "gloo", init_method=store, rank=rank, world_size=world,
                                   **({"device_id": device} if cuda else {}))

    def ended():
        if cuda:
            torch.cuda.synchronize()

    for kind in KINDS:
        for dtype in (torch.float32, torch.bfloat16):
            for mib in options.mib:
                count = max(world, int(mib * 2**20) // dtype.itemsize // world * world)
                run, result = once(kind, numbers(rank, count, dtype, device), world)
                run()
                ended()
                # Not "differs": NaN must count as wrong.
                wrong = (~(result == expected(kind, rank, world, count, dtype, device))).sum().double().cpu()
                distributed.barrier()
                begin = time.perf_counter()
                for _ in range(options.rounds):
                    run()
                ended()
                seconds = (time.perf_counter() - begin) / options.rounds
                counted = torch.stack([wrong, torch.tensor(seconds, dtype=torch.float64)]).to(device)
                distributed.all_reduce(counted)
                if rank == 0:
                    size = result.numel() if kind == "all_gather" else count
                    print(json.dumps({"name": f"{kind} {str(dtype).split('.')[1]}", "ranks": world, "mib": mib, "ms": round(seconds * 1e3, 3),
                                      "gb_per_second": round(size * dtype.itemsize / seconds / 1e9, 2), "wrong": int(counted[0])}), flush=True)
    distributed.barrier()
    os._exit(0)


def main():
    numbers_of = lambda kind: lambda text: [kind(part) for part in text.split(",")]  # noqa: E731
    parser = argparse.ArgumentParser(description="Collectives of ranks that share one GPU: right, and how fast.")
    parser.add_argument("--device", choices=["cuda", "cpu"], required=True)
    parser.add_argument("--ranks", type=numbers_of(int), default=[2, 4])
    parser.add_argument("--mib", type=numbers_of(float), default=[0.004, 4, 64])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--timeout", type=int, default=300, help="seconds of one world")
    options = parser.parse_args()
    failed, context = [], peers.forking()
    for world in options.ranks:
        lines, why = peers.on_ranks(options, context, world, run_rank)
        lines += [{"name": "all", "ranks": world, "failed": why}] if why else []
        for line in lines:
            print(json.dumps(line), flush=True)
            if line.get("wrong") or "failed" in line:
                failed.append(f"{line['name']} of {world} ranks")
    if failed:
        peers.say(f"collectives.py: failed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
