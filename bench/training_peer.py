# SPDX-License-Identifier: Apache-2.0
# One rank of the peer: the work of training.cpp as PyTorch's own Python DDP and fully_shard do it.
# Started by compare_training.py, which says on stdin how many steps to run and reads one line of JSON per round.
# Model, initial values and data are the formulas of training.cpp, written again: the losses must agree.
import argparse
import contextlib
import json
import sys
import time
import warnings

warnings.filterwarnings("ignore", message="Failed to initialize NumPy")

import torch
import torch.distributed
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn import functional as F

POOL = 4  # steps of data, made before the clock starts
# model: blocks, width, rows of a micro-batch on one rank
MLP_SHAPES = {"mlp": (8, 1024, 32), "tiny": (64, 8, 4)}
VOCABULARY, CONTEXT, LAYERS, WIDTH, HEADS, GPT_ROWS = 1024, 64, 4, 384, 6, 2


def noise(first, count):
    """Numbers in [-1, 1) for the indices from `first`: integer arithmetic, so every implementation gets the same."""
    mask = 2**31 - 1
    x = (torch.arange(first, first + count) * 1103515245 + 12345) & mask
    x = x ^ (x >> 15)
    x = (x * 747796405) & mask
    x = x ^ (x >> 13)
    return (x.double() / 2**30 - 1).float()


def fill(model):
    first = 0
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 2:
                parameter.copy_(noise(first, parameter.numel()).view_as(parameter) / parameter.size(1) ** 0.5)
            elif name.endswith("bias"):
                parameter.zero_()
            first += parameter.numel()


class MlpBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = nn.Linear(width, width)
        self.down = nn.Linear(width, width)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))


class Mlp(nn.Module):
    def __init__(self, blocks, width, rows):
        super().__init__()
        self.shape = (rows, width)
        self.blocks = []
        for i in range(blocks):
            self.add_module(f"block{i}", MlpBlock(width))
            self.blocks.append(getattr(self, f"block{i}"))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x

    def batch(self, number):
        rows, width = self.shape
        return tuple(noise((2 * number + i) * rows * width, rows * width).view(rows, width) for i in range(2))

    def loss(self, outputs, targets):
        return F.mse_loss(outputs, targets)


class GptBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1 = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.norm2 = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, HEADS, width // HEADS).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        middle = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return middle + self.down(F.gelu(self.up(self.norm2(middle))))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Embedding(CONTEXT, WIDTH)
        self.blocks = []
        for i in range(LAYERS):
            self.add_module(f"block{i}", GptBlock())
            self.blocks.append(getattr(self, f"block{i}"))
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.size(1)))
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.tokens.weight)

    def batch(self, number):
        count = GPT_ROWS * (CONTEXT + 1)
        tokens = ((noise(number * count, count) + 1) * (VOCABULARY / 2)).long().view(GPT_ROWS, CONTEXT + 1)
        return tokens[:, :-1].contiguous(), tokens[:, 1:].reshape(-1)

    def loss(self, outputs, targets):
        return F.cross_entropy(outputs.view(-1, VOCABULARY), targets)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=["mlp", "gpt", "tiny"], required=True)
    parser.add_argument("--method", choices=["ddp", "fsdp"], required=True)
    parser.add_argument("--micro-batches", type=int, required=True)
    parser.add_argument("--fused", action="store_true", help="AdamW(fused=True)")
    parser.add_argument("--bucket-view", action="store_true", help="DDP(gradient_as_bucket_view=True)")
    parser.add_argument("--defer", action="store_true", help="fsdp: reduce and reshard after the last micro-batch only")
    parser.add_argument("--keep", action="store_true", help="fsdp: reshard_after_forward=False")
    options = parser.parse_args()

    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    torch.distributed.init_process_group("gloo")
    rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
    bare = Gpt() if options.model == "gpt" else Mlp(*MLP_SHAPES[options.model])
    fill(bare)
    if options.method == "ddp":
        model = nn.parallel.DistributedDataParallel(bare, gradient_as_bucket_view=options.bucket_view)
    else:
        mesh = torch.distributed.init_device_mesh("cpu", (world,))
        keep = {"reshard_after_forward": False} if options.keep else {}
        for block in bare.blocks:
            fully_shard(block, mesh=mesh, **keep)
        model = fully_shard(bare, mesh=mesh, **keep)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=options.fused)

    micro_batches = options.micro_batches
    pool = [bare.batch(i) for i in range(POOL * micro_batches * world)]

    def before_micro_batch(is_last):
        """What the peer has to keep ranks from talking before the last micro-batch."""
        if options.method == "ddp" and not is_last:
            return model.no_sync()
        if options.defer:
            model.set_requires_gradient_sync(is_last)
            model.set_reshard_after_backward(is_last)
        return contextlib.nullcontext()

    def run_step(step):
        optimizer.zero_grad()
        total = 0.0
        for micro in range(micro_batches):
            inputs, targets = pool[((step % POOL) * world + rank) * micro_batches + micro]
            with before_micro_batch(micro + 1 == micro_batches):
                loss = bare.loss(model(inputs), targets) / micro_batches
                loss.backward()
            total += loss.item()
        optimizer.step()
        return total

    step = 0
    print(json.dumps({"ready": True, "torch": torch.__version__, "adamw": "fused" if options.fused else "default"}), flush=True)
    for line in sys.stdin:
        losses = []
        torch.distributed.barrier()
        start = time.perf_counter()
        for _ in range(int(line)):
            losses.append(run_step(step))
            step += 1
        torch.distributed.barrier()
        seconds = time.perf_counter() - start
        print(json.dumps({"seconds": seconds, "losses": losses}), flush=True)
    torch.distributed.destroy_process_group()


main()
