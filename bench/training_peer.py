# SPDX-License-Identifier: Apache-2.0
# One rank of the peer: the work of training.cpp as PyTorch's own Python DDP and fully_shard do it.
# Started by compare_training.py, which says on stdin how many steps to run and reads one line of JSON per round.
# Model, initial values and data are the formulas of training.cpp, written again: the losses must agree.
import argparse
import collections
import contextlib
import json
import os
import sys
import time
import warnings

warnings.filterwarnings("ignore", message="Failed to initialize NumPy")

import torch
import torch.distributed
import torch.utils.checkpoint
from torch import nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn import functional as F

POOL = 4  # steps of data, made before the clock starts
# model: blocks, width, rows of a micro-batch on one rank
MLP_SHAPES = {"mlp": (8, 1024, 32), "lora": (8, 1024, 32), "tiny": (64, 8, 4)}
VOCABULARY, CONTEXT, LAYERS, WIDTH, HEADS, GPT_ROWS = 1024, 64, 4, 384, 6, 2
LlamaShape = collections.namedtuple("LlamaShape", "vocabulary context layers width heads key_heads inner rows")
LLAMA_SHAPES = {
    "llama": LlamaShape(32000, 2048, 22, 2048, 32, 4, 5632, 2),
    "llama_tiny": LlamaShape(512, 32, 3, 64, 4, 2, 176, 2),
}


def noise(first, count, device="cpu"):
    """Numbers in [-1, 1) for the indices from `first`: integer arithmetic, so every implementation gets the same."""
    mask = 2**31 - 1
    x = (torch.arange(first, first + count, device=device) * 1103515245 + 12345) & mask
    x = x ^ (x >> 15)
    x = (x * 747796405) & mask
    x = x ^ (x >> 13)
    return (x.double() / 2**30 - 1).float()


def fill(model):
    first = 0
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 2:
                parameter.copy_(noise(first, parameter.numel(), parameter.device).view_as(parameter) / parameter.size(1) ** 0.5)
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


class LoraLinear(nn.Module):
    def __init__(self, width, rank=8):
        super().__init__()
        self.lora_a = nn.Parameter(torch.empty(rank, width))
        self.lora_b = nn.Parameter(torch.empty(width, rank))
        self.base = nn.Linear(width, width, bias=False)
        self.base.weight.requires_grad_(False)

    def forward(self, x):
        return self.base(x) + F.linear(F.linear(x, self.lora_a), self.lora_b)


class LoraBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = LoraLinear(width)
        self.down = LoraLinear(width)

    def compute(self, x):
        return x + self.down(torch.relu(self.up(x)))

    def forward(self, x):
        return torch.utils.checkpoint.checkpoint(self.compute, x, use_reentrant=False)


class Mlp(nn.Module):
    def __init__(self, blocks, width, rows, block=MlpBlock):
        super().__init__()
        self.shape = (rows, width)
        self.blocks = []
        for i in range(blocks):
            self.add_module(f"block{i}", block(width))
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


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return F.rms_norm(x, self.weight.shape, self.weight, 1e-5)


class LlamaBlock(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.head_width = shape.width // shape.heads
        keys = shape.key_heads * self.head_width
        self.norm1 = RmsNorm(shape.width)
        self.query = nn.Linear(shape.width, shape.width, bias=False)
        self.key = nn.Linear(shape.width, keys, bias=False)
        self.value = nn.Linear(shape.width, keys, bias=False)
        self.out = nn.Linear(shape.width, shape.width, bias=False)
        self.norm2 = RmsNorm(shape.width)
        self.gate = nn.Linear(shape.width, shape.inner, bias=False)
        self.up = nn.Linear(shape.width, shape.inner, bias=False)
        self.down = nn.Linear(shape.inner, shape.width, bias=False)

    def forward(self, x, cosines, sines):
        rows, time, width = x.shape

        def heads(y):
            return y.view(rows, time, -1, self.head_width).transpose(1, 2)

        def turn(y):
            first, second = y.chunk(2, -1)
            return y * cosines + torch.cat((-second, first), -1) * sines

        normed = self.norm1(x)
        query, key, value = turn(heads(self.query(normed))), turn(heads(self.key(normed))), heads(self.value(normed))
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)
        middle = x + self.out(mixed.transpose(1, 2).reshape(rows, time, width))
        again = self.norm2(middle)
        return middle + self.down(F.silu(self.gate(again)) * self.up(again))


class Llama(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        self.tokens = nn.Embedding(shape.vocabulary, shape.width)
        self.blocks = []
        for i in range(shape.layers):
            self.add_module(f"block{i}", LlamaBlock(shape))
            self.blocks.append(getattr(self, f"block{i}"))
        self.norm = RmsNorm(shape.width)
        self.head = nn.Linear(shape.width, shape.vocabulary, bias=False)
        half = shape.width // shape.heads // 2
        rates = 10000.0 ** (-torch.arange(half, dtype=torch.float64) / half)
        angles = torch.arange(shape.context, dtype=torch.float64)[:, None] * rates
        both = torch.cat((angles, angles), -1).float()
        self.register_buffer("cosines", both.cos())
        self.register_buffer("sines", both.sin())

    def forward(self, tokens):
        x = self.tokens(tokens)
        cosines, sines = self.cosines.to(x.dtype), self.sines.to(x.dtype)
        for block in self.blocks:
            x = block(x, cosines, sines)
        return self.head(self.norm(x))

    def batch(self, number):
        rows, length = self.shape.rows, self.shape.context + 1
        count = rows * length
        tokens = ((noise(number * count, count) + 1) * (self.shape.vocabulary / 2)).long().view(rows, length)
        return tokens[:, :-1].contiguous(), tokens[:, 1:].reshape(-1)

    def loss(self, outputs, targets):
        return F.cross_entropy(outputs.view(-1, self.shape.vocabulary).float(), targets)


class Qwen(nn.Module):
    """transformers' model of a folder, with PEFT's adapter on it or without."""

    def __init__(self, folder, adapts):
        super().__init__()
        import transformers

        self.inner = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="sdpa")
        self.vocabulary = self.inner.config.vocab_size
        self.blocks = list(self.inner.model.layers)
        if adapts:
            import peft

            self.inner = peft.PeftModel.from_pretrained(self.inner, os.path.join(folder, "adapter"), is_trainable=True)

    def forward(self, tokens):
        return self.inner(input_ids=tokens, use_cache=False).logits

    def batch(self, number):
        rows, length = 2, 129
        tokens = ((noise(number * rows * length, rows * length) + 1) * (self.vocabulary / 2)).long().view(rows, length)
        return tokens[:, :-1].contiguous(), tokens[:, 1:].reshape(-1)

    def loss(self, outputs, targets):
        return F.cross_entropy(outputs.view(-1, self.vocabulary).float(), targets)


def make_qwen(folder):
    """A Qwen2.5 of about 100 M parameters with random weights, and an adapter of rank 8 over all its projections."""
    import peft
    import transformers

    torch.manual_seed(1)
    config = transformers.Qwen2Config(
        vocab_size=32000, hidden_size=640, intermediate_size=2560, num_hidden_layers=14, num_attention_heads=10,
        num_key_value_heads=2, max_position_embeddings=2048, tie_word_embeddings=True, rope_theta=1e6)
    model = transformers.Qwen2ForCausalLM(config)
    model.save_pretrained(folder)
    adapted = peft.get_peft_model(model, peft.LoraConfig(r=8, lora_alpha=16, target_modules="all-linear", task_type="CAUSAL_LM"))
    adapted.save_pretrained(os.path.join(folder, "adapter"))


def main():
    if sys.argv[1] == "--make-qwen":
        make_qwen(sys.argv[2])
        return
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=["gpt", "qwen", "qwen_lora", *MLP_SHAPES, *LLAMA_SHAPES], required=True)
    parser.add_argument("--folder", help="of a Qwen, as --make-qwen made it")
    parser.add_argument("--method", choices=["ddp", "fsdp", "hsdp", "plain"], required=True)
    parser.add_argument("--micro-batches", type=int, required=True)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--precision", choices=["fp32", "mixed", "pure"], default="fp32",
                        help="mixed: fp32 parameters, bf16 gathered, fp32 reduced (fsdp); pure: bf16 parameters (plain)")
    parser.add_argument("--compile", metavar="BACKEND", help="torch.compile each block by it")
    parser.add_argument("--fused", action="store_true", help="AdamW(fused=True)")
    parser.add_argument("--bucket-view", action="store_true", help="DDP(gradient_as_bucket_view=True)")
    parser.add_argument("--defer", action="store_true", help="fsdp: reduce and reshard after the last micro-batch only")
    parser.add_argument("--keep", action="store_true", help="fsdp: reshard_after_forward=False")
    options = parser.parse_args()

    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    on_gpu = options.device == "cuda"
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
    if "RANK" not in os.environ:  # one rank alone still needs a group for fully_shard
        os.environ.update(RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
    torch.distributed.init_process_group("nccl" if on_gpu else "gloo")
    rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
    if options.model in LLAMA_SHAPES:
        bare = Llama(LLAMA_SHAPES[options.model])
    elif options.model.startswith("qwen"):
        bare = Qwen(options.folder, options.model == "qwen_lora")
    else:
        block = LoraBlock if options.model == "lora" else MlpBlock
        bare = Gpt() if options.model == "gpt" else Mlp(*MLP_SHAPES[options.model], block)
    bare.to(device)
    if not options.model.startswith("qwen"):
        fill(bare)
    if options.precision == "pure":
        bare.to(torch.bfloat16)
    if options.compile:
        for block in bare.blocks:
            block.compile(backend=options.compile)
    if options.method == "plain":
        model = bare
    elif options.method == "ddp":
        model = nn.parallel.DistributedDataParallel(bare, gradient_as_bucket_view=options.bucket_view)
    else:
        if options.method == "hsdp":
            mesh = torch.distributed.init_device_mesh(options.device, (world // 2, 2), mesh_dim_names=("replicate", "shard"))
        else:
            mesh = torch.distributed.init_device_mesh(options.device, (world,))
        keep = {"reshard_after_forward": False} if options.keep else {}
        if options.precision == "mixed":
            keep["mp_policy"] = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        for block in bare.blocks:
            fully_shard(block, mesh=mesh, **keep)
        model = fully_shard(bare, mesh=mesh, **keep)
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trainable, lr=2e-3 if options.model == "qwen_lora" else 1e-4, fused=options.fused)

    micro_batches = options.micro_batches
    pool = [tuple(part.to(device) for part in bare.batch(i)) for i in range(POOL * micro_batches * world)]

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
        total = torch.zeros((), dtype=torch.float64, device=device)
        for micro in range(micro_batches):
            inputs, targets = pool[((step % POOL) * world + rank) * micro_batches + micro]
            with before_micro_batch(micro + 1 == micro_batches):
                loss = bare.loss(model(inputs), targets) / micro_batches
                loss.backward()
            total += loss.detach()
        optimizer.step()
        return total.item()

    step = 0
    print(json.dumps({"ready": True, "torch": torch.__version__, "adamw": "fused" if options.fused else "default"}), flush=True)
    for line in sys.stdin:
        losses = []
        torch.distributed.barrier()
        start = time.perf_counter()
        for _ in range(int(line)):
            losses.append(run_step(step))
            step += 1
        if on_gpu:
            torch.cuda.synchronize()
        torch.distributed.barrier()
        seconds = time.perf_counter() - start
        memory = {}
        if on_gpu:
            memory = {"device_peak": torch.cuda.max_memory_allocated(), "device_kept": torch.cuda.memory_allocated()}
        print(json.dumps({"seconds": seconds, "losses": losses, **memory}), flush=True)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
