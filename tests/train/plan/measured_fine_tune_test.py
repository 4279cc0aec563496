#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Real steps of `sealift-train pretrain` held to the seconds of `sealift-train plan`: whole models, LoRA and QLoRA of four
# families, ddp and fsdp on two ranks. Rates come from six runs of a whole Llama, all others are predicted.
#   measured_fine_tune_test.py SEALIFT_TRAIN [--rounds N] [--keep FILE]      --rounds 0: judge what FILE has
# For a machine that does nothing else; ../simulate/measured_test.py says which steps count. Needs tokenizers and torch.
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / each) for each in ("simulate", "loop")]
import made_model  # noqa: E402
import measured_test as measured_step  # noqa: E402

LENGTH, RANKS, STEPS, WIDTH, LAYERS = 128, 2, 8, 384, 6
SHAPE = {"hidden_size": WIDTH, "num_hidden_layers": LAYERS, "intermediate_size": 1024, "num_attention_heads": 6,
         "num_key_value_heads": 2, "head_dim": 64, "vocab_size": 320, "max_position_embeddings": LENGTH,
         "tie_word_embeddings": False, "hidden_act": "silu", "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
         "torch_dtype": "float32", "eos_token_id": 2, "pad_token_id": 0}
FAMILIES = {
    "llama": {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_key_value_heads": 6},
    "qwen2": {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2"},
    "qwen3": {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3"},
    "qwen3_moe": {"architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "num_experts": 4,
                  "num_experts_per_tok": 2, "moe_intermediate_size": 512, "decoder_sparse_step": 1,
                  "norm_topk_prob": True, "mlp_only_layers": []},
}


class Job:
    def __init__(self, family, tuner, method, rows=2, micro=1, recompute=False):
        self.family, self.tuner, self.method, self.rows, self.micro = family, tuner, method, rows, micro
        self.recompute = recompute
        self.name = (f"{family}, {'whole' if tuner == 'none' else tuner}, {method}, {rows} x {micro}"
                     f"{', recomputed' if recompute else ''}")

    def key(self):
        """Its row in plan's table, which keeps units gathered between micro-batches where the engine does."""
        return (self.tuner, self.method, self.rows, self.micro, self.recompute)


GIVEN = [Job("llama", "none", method, rows, micro)
         for method in ("ddp", "fsdp") for rows, micro in ((1, 4), (2, 1), (4, 1))]
JOBS = GIVEN + [Job(family, tuner, method, rows, micro)
                for family in FAMILIES for tuner in ("none", "lora", "qlora") for method in ("ddp", "fsdp")
                for rows, micro in ((2, 1), (1, 4)) if (family, tuner) != ("llama", "none")]
JOBS += [Job("llama", tuner, method, recompute=True) for tuner in ("none", "lora", "qlora") for method in ("ddp", "fsdp")]


def make_models(folder):
    for family, more in FAMILIES.items():
        (folder / family).mkdir()
        made_model.make_tokenizer(folder / family)
        (folder / family / "config.json").write_text(json.dumps({**SHAPE, **more}))
    draw = random.Random(1)
    text = " ".join(made_model.sentence(draw) for _ in range(9000))  # split: each row has LENGTH tokens
    made_model.write_lines(folder / "text.jsonl", [{"text": text}])


def run(program, job, folder):
    out = folder / "out"
    words = ["pretrain", "--model", folder / job.family, "--data", folder / "text.jsonl", "--truncation-strategy", "split",
             "--max-length", LENGTH, "--packing", "false", "--tuner", job.tuner, "--parallel-method", job.method,
             "--ranks", RANKS, "--per-device-train-batch-size", job.rows, "--gradient-accumulation-steps", job.micro,
             "--max-steps", STEPS, "--save-strategy", "no", "--output-dir", out,
             "--gradient-checkpointing", str(job.recompute).lower(), "--device", "cpu", "--threads", 1]
    try:
        return measured_step.steps_of([program, *words], out / "log.jsonl", RANKS * job.rows * job.micro * LENGTH)
    finally:
        subprocess.run(["rm", "-rf", out], check=True)


def planned(program, jobs, rates, folder):
    """Seconds of a step by the table of `sealift-train plan`, one for each job."""
    tables, seconds = {}, []
    for job in jobs:
        asked = (job.family, job.tuner, RANKS * job.rows * job.micro)
        if asked not in tables:
            words = ["--model", folder / job.family, "--machine", f"1x{RANKS}x64GB", "--device", "cpu", "--precision",
                     "fp32", "--tuner", job.tuner, "--length", LENGTH, "--batch", asked[-1], "--no-offload", "--json",
                     "--flops", f"{2 * rates['flops'] / 1e9:.4f}G",  # half of it counts in fp32
                     "--card-link", f"{rates['link'] / 1e6:.4f}MB/s", "--memory-rate", f"{rates['memory'] / 1e6:.4f}MB/s",
                     "--latency", f"{measured_step.LATENCY * 1e6:.4f}us"]
            done = subprocess.run([program, "plan", *map(str, words)], capture_output=True, text=True, check=True)
            tables[asked] = {(row["tuner_type"], row["parallel_method"], row["per_device_train_batch_size"],
                              row["gradient_accumulation_steps"], row["gradient_checkpointing"]): row["seconds"]["step"]
                             for row in reversed(json.loads(done.stdout)["rows"])  # of equal ones the first, the fastest
                             if row["reshard_after_forward"] or row["parallel_method"] == "ddp"}
        seconds.append(tables[asked][job.key()])
    return seconds


def main():
    arguments = measured_step.arguments_of("trainer")
    os.environ.update(SEALIFT_TRAIN_PYTHON=sys.executable)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make_models(folder)
        measured = measured_step.measure(JOBS, lambda job: run(arguments.trainer, job, folder), arguments.rounds,
                                         arguments.keep)
        rates = measured_step.fit(GIVEN, lambda rates: planned(arguments.trainer, GIVEN, rates, folder), measured,
                                  {"flops": 6e10, "link": 1e9, "memory": 3e10}, ("flops", "link", "memory"), 1.02)
        print({rate: f"{value:.3g}" for rate, value in rates.items()})
        seconds = dict(zip((job.name for job in JOBS), planned(arguments.trainer, JOBS, rates, folder)))
    # docs/planning.md says which.
    return 1 if measured_step.hold("sealift-train plan", JOBS, GIVEN, seconds, measured, known=1) else 0


if __name__ == "__main__":
    sys.exit(main())
