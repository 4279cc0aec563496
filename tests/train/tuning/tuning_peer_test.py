# SPDX-License-Identifier: Apache-2.0
# Adapters against PEFT, NF4 against bitsandbytes, on the CPU: bytes, losses of ten AdamW steps, files both ways.
# Both sides start from a made Qwen2 and from an adapter that PEFT has saved; strategies are drawn from a seed.
# The last cases are wrong on purpose and must be told apart, so that agreement means something.
#   tuning_peer_test.py PROGRAM [SEED]    PROGRAM: sealift-tuning-oracle; with PEFT and bitsandbytes in PYTHONPATH
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import warnings

sys.dont_write_bytecode = True  # no folder of caches among the sources
os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error", HF_HUB_DISABLE_PROGRESS_BARS="1",
                  TORCHDYNAMO_DISABLE="1")  # compiling bitsandbytes' fallbacks would take a minute
warnings.filterwarnings("ignore")

import bitsandbytes
import torch
from bitsandbytes.functional import dequantize_4bit, quantize_4bit
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from torch.nn import functional as F
from transformers import AutoModelForCausalLM, Qwen2Config

ROWS, TIME, STEPS, VOCABULARY = 24, 8, 10, 96
ALL = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
CASES = {
    "lora": dict(r=4, lora_alpha=8, target_modules=ALL),
    "rslora": dict(r=8, lora_alpha=4, target_modules=["q_proj", "v_proj"], use_rslora=True),
    "dora": dict(r=4, lora_alpha=8, target_modules=["v_proj", "o_proj", "down_proj"], use_dora=True),
    "qlora": dict(r=4, lora_alpha=16, target_modules=ALL),
}
METHODS = [("ddp", 1, 0), ("ddp", 2, 0), ("fsdp", 2, 0), ("fsdp", 3, 0), ("hsdp", 4, 2)]
failed = []


def report(good, what):
    print(f"{'ok' if good else 'FAILED'}: {what}", flush=True)
    if not good:
        failed.append(what)


def quantized(values):
    """What bitsandbytes makes of a matrix: codes, scales' codes, decoded values."""
    codes, state = quantize_4bit(values, blocksize=64, quant_type="nf4", compress_statistics=True)
    return codes.flatten(), state.absmax, dequantize_4bit(codes, state).flatten()


def compare_bytes(program, work):
    torch.manual_seed(1)
    tensors = {}
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        name = str(dtype).split(".")[1]
        # More than 256 scales, less than 64 elements, a last block that is not full, odd numbers. Rows of a multiple of
        # 16 but not of 64 are left out: with AVX-512 bitsandbytes 0.50 takes the scales of other blocks for them.
        for rows, columns in ((64, 64), (3, 7), (1, 1), (129, 130), (300, 320), (17, 101)):
            tensors[f"{name}.{rows}x{columns}"] = (torch.randn(rows, columns) * 0.05).to(dtype)
        outliers = torch.randn(64, 192) * torch.logspace(-9, 3, 64).unsqueeze(1)
        outliers[3] = 0
        tensors[f"{name}.outliers"] = outliers.to(dtype)
        tensors[f"{name}.zeros"] = torch.zeros(4, 64, dtype=dtype)
    tensors["large"] = torch.randn(2048, 1536) * 0.02  # LibTorch sums so many scales by several threads, if it has them
    save_file(tensors, f"{work}/in.safetensors")
    subprocess.run([program, "nf4", f"{work}/in.safetensors", f"{work}/out.safetensors"], check=True)
    ours = load_file(f"{work}/out.safetensors")
    for name, values in tensors.items():
        for part, theirs in zip(("codes", "scales", "values"), quantized(values)):
            report(torch.equal(ours[f"{name}.{part}"], theirs), f"NF4 {part} of {name}")
    report(not torch.equal(ours["large.values"], tensors["large"].flatten()), "NF4 changes values")


def batch_of(step):
    row, time = torch.arange(ROWS).view(-1, 1), torch.arange(TIME).view(1, -1)
    return (row * 7 + time * (row + 3) + step * 11) % VOCABULARY


def loss_of(model, step):
    ids = batch_of(step)
    return F.cross_entropy(model(input_ids=ids).logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())


def load(folder, four_bits=False):
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    if four_bits:
        for name, module in list(model.named_modules()):
            if not isinstance(module, torch.nn.Linear) or name == "lm_head":
                continue
            ours = bitsandbytes.nn.Linear4bit(module.in_features, module.out_features, module.bias is not None,
                                              compute_dtype=torch.float32, quant_type="nf4")
            ours.weight = bitsandbytes.nn.Params4bit(module.weight.data, requires_grad=False, quant_type="nf4",
                                                     compress_statistics=True, module=ours)
            ours.bias = module.bias
            model.set_submodule(name, ours.to("cpu"))
        model.is_loaded_in_4bit = True
    return model


def train(name, model, folder, options):
    """PEFT's losses, of ten steps and after them; saves the adapter before the first."""
    torch.manual_seed(2)
    peft = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", **options))
    with torch.no_grad():
        for key, parameter in peft.named_parameters():
            if "lora_B" in key:
                parameter.normal_(0, 0.05)  # so that every factor has a gradient from the first step on
    peft.save_pretrained(folder)
    optimizer = torch.optim.AdamW([p for p in peft.parameters() if p.requires_grad], lr=5e-3)
    losses = []
    for step in range(STEPS + 1):
        optimizer.zero_grad()
        loss = loss_of(peft, step)
        losses.append(loss.item())
        if step < STEPS:
            loss.backward()
            optimizer.step()
    return losses, peft


def run(program, model, adapter, out, method, micro, recompute, replicate, stored):
    os.makedirs(out)
    command = [program, "train", model, adapter, out, *map(str, method), str(micro), str(recompute), str(replicate),
               str(stored)]
    subprocess.run(command, check=True, timeout=300)
    with open(f"{out}/losses") as file:
        return [float(line) for line in file]


def difference(ours, theirs):
    return max(abs(a - b) / abs(b) for a, b in zip(ours, theirs))


def compare_training(program, work, draw):
    base = f"{work}/model"
    torch.manual_seed(0)
    config = Qwen2Config(vocab_size=VOCABULARY, hidden_size=64, intermediate_size=128, num_hidden_layers=2,
                         num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64, initializer_range=0.1,
                         tie_word_embeddings=False)
    AutoModelForCausalLM.from_config(config).save_pretrained(base)
    for name, options in CASES.items():
        stored = int(name == "qlora")
        adapter = f"{work}/{name}"
        theirs, peft = train(name, load(base, stored), adapter, options)
        # Evaluated, bitsandbytes multiplies in bf16 where the CPU can.
        limit, evaluated = 2e-5, 2e-3 if stored else 2e-5
        methods = draw.sample(METHODS, 2) if name != "lora" else METHODS
        for number, method in enumerate(methods):
            out = f"{work}/{name}.{number}"
            micro, recompute, replicate = draw.choice((1, 2)), draw.randrange(2), draw.randrange(2)
            losses = run(program, base, adapter, out, method, micro, recompute, replicate, stored)
            off = difference(losses, theirs)
            report(off <= limit, f"{name} under {method}, {micro} micro-batches, recompute {recompute}, replicated "
                                 f"{replicate}: losses {losses[0]:.4f} to {losses[-1]:.4f}, off by {off:.1e} of {limit}")
            back = PeftModel.from_pretrained(load(base, stored), f"{out}/adapter")
            off = abs(loss_of(back, STEPS).item() - losses[-1]) / losses[-1]
            report(off <= evaluated, f"{name}: PEFT loads our adapter, loss off by {off:.1e}")
        if not stored:
            merged = load(f"{out}/merged")
            off = (merged(input_ids=batch_of(0)).logits - back(input_ids=batch_of(0)).logits).abs().max().item()
            report(off <= 2e-4, f"{name}: our merged model has PEFT's logits, off by {off:.1e}")
        # Wrong on purpose: told another alpha, or in qlora's case to store nothing.
        wrong = f"{work}/{name}.wrong"
        shutil.copytree(adapter, wrong)
        with open(f"{wrong}/adapter_config.json") as file:
            config = json.load(file)
        config["lora_alpha"] += 4
        with open(f"{wrong}/adapter_config.json", "w") as file:
            json.dump(config, file)
        losses = run(program, base, adapter if stored else wrong, f"{wrong}/out", ("fsdp", 2, 0), 1, 0, 0, 0)
        off = difference(losses, theirs)
        report(off > 10 * limit, f"{name}, wrong on purpose: off by {off:.1e}")


def main():
    torch.set_num_threads(1)  # the mean of many scales depends on it
    program, seed = os.path.abspath(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "16"
    print(f"seed {seed}")
    with tempfile.TemporaryDirectory() as work:
        compare_bytes(program, work)
        compare_training(program, work, random.Random(seed))
    if failed:
        sys.exit("FAILED: " + "; ".join(failed))


if __name__ == "__main__":
    main()
