#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# What the pages on training tell people to type, run as it stands there (tests/support/page_commands.py), over made models
# of two layers, made chats, and two ranks where a page has eight.
#   pages_test.py SEALIFT_TRAIN SEALIFT_LAUNCH    in a Python with transformers
import json
import pathlib
import shutil
import sys
import tempfile

BIN = [pathlib.Path(program).resolve().parent for program in sys.argv[1:3]]
HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True  # no folder of caches among the sources
sys.path[:0] = [str(HERE.parent / "support"), str(HERE / "loop")]
import made_model  # noqa: E402
from page_commands import ROOT, Pages, Way  # noqa: E402

PAGES = ["README.md", "docs/trainer.md", "docs/planning.md", "docs/which_method.md", "docs/training_data.md", "docs/sft.md",
         "docs/jobs_of_others.md", "docs/long_jobs.md", "docs/experiment_trackers.md", "docs/rehearse.md",
         "launch/README.md"]
TINY = " --steps 4 --layers 1 --width 16 --heads 2 --context 16 --threads 1 --device cpu"  # of a run
SHORT = " --max-steps 1 --threads 1 --device cpu"  # of fine-tuning
TWO = {"--ranks 8": "--ranks 2"}
LOOSE = " --floor-factor 9"  # after four steps
LAUNCH = {"--nproc 8": "--nproc 2"}

RUN = {
    # README.md
    "sealift-train run --parallel-method ddp --ranks 2 --micro-batches 4 --out ddp": Way(more=TINY),
    "sealift-train run --parallel-method fsdp --ranks 2 --micro-batches 4 --out fsdp --recompute true": Way(more=TINY),
    "sealift-train check ddp/result.json fsdp/result.json": Way(more=LOOSE),
    "sealift-train sft --model Qwen2.5-7B --data chats.jsonl --preset fsdp_lora --ranks 8 --output-dir out":
        Way(TWO, SHORT + " && rm -r out"),  # docs/sft.md has it, too
    # docs/trainer.md
    "sealift-train run": Way(more=TINY),
    "sealift-train run --parallel-method ddp --ranks 2 --out ddp": Way(more=TINY),
    "sealift-train run --parallel-method fsdp --ranks 2 --out fsdp": Way(more=TINY),
    "sealift-train check sealift-train-out/result.json ddp/result.json fsdp/result.json": Way(more=LOOSE),
    "sealift-launch --nproc 8 python3 train.py": Way(LAUNCH),
    "sealift-train run --checkpoint-folder saved --checkpoint-every 100": Way(more=TINY),
    "sealift-train export saved model.safetensors": Way(),
    "sealift-train export saved hf --max-file-gb 5 --bf16": Way(),
    # docs/planning.md
    "sealift-train plan --model Qwen2.5-7B --machine 2x8x80GB --link 400Gbit --tokens 1e9": Way(),
    "sealift-train plan --model Qwen2.5-7B --machine 4x24GB --tuner lora,qlora --link 10Gbit --lang zh": Way(),
    "sealift-train plan --model DIR --machine 8x80GB --data chats.tokens --job job.toml": Way({"DIR": "Qwen2.5-7B"}),
    "sealift-train sft --config job.toml --ranks 8":
        Way(TWO, SHORT + " --output-dir planned"),
    # docs/which_method.md
    "sealift-train plan --model Qwen2.5-7B --machine 1x4x24GB --tuner lora": Way(),
    "sealift-train race job.toml --ranks 4 --methods ddp,fsdp,shard_grad_op --page race.html":
        Way({"job.toml": "raced.toml", "--ranks 4": "--ranks 2"}, " --steps 3 --minutes 2"),
    "sealift-train compare sealift-race/ddp sealift-race/fsdp monday/result.json":
        Way({"monday/result.json": "sealift-race/shard_grad_op/result.json"}),
    "sealift-train plan --model samples/which_method/olmo_1b --machine 1x4x80GB --tuner none --length 2048 --batch 256 "
    "--no-offload --flops 66T --link 2.9GB/s --top 100": Way({"samples/": f"{ROOT}/samples/"}),
    # docs/training_data.md
    "sealift-train tokenize --model Qwen2.5-7B --data train.jsonl --out train.tokens --max-length 4096 "
    "--truncation-strategy delete": Way({"train.jsonl": "chats.jsonl"}),
    # docs/sft.md
    "sealift-train dpo --model Qwen2.5-7B --data pairs.jsonl --tuner lora --parallel-method fsdp --ranks 8 --output-dir out":
        Way({**TWO, "--output-dir out": "--output-dir preferred"}, SHORT),
    "sealift-train pretrain --model Qwen2.5-0.5B --data text.jsonl --max-length 2048 --preset ddp_full --output-dir out":
        Way({"--output-dir out": "--output-dir read"}, SHORT),
    # docs/jobs_of_others.md
    "sealift-train explain qwen_lora.yaml": Way(),
    "sealift-train sft --config qwen_lora.yaml --ranks 8 --parallel-method auto": Way(TWO, SHORT),
    # docs/experiment_trackers.md
    "samples/log_to_tracker.py OUT --to csv > curves.csv":
        Way({"samples/": f"{ROOT}/samples/", "OUT": "sealift-train-out"}, " && [ $(wc -l < curves.csv) -ge 4 ]"),
    # docs/rehearse.md
    "sealift-train rehearse qwen2.5-72b/ --ranks 1024 --memory 80GB": Way(),
    "sealift-train rehearse qwen3-235b/config.json --ranks 64 --expert-ranks 8 --tuner lora --json": Way(),
    # launch/README.md
    "sealift-launch --nproc 2 python train.py": Way(),
}
SLURM = "wants Slurm; launch.test starts its variables, many_machines.slurm a real one"
NOT_HERE = {
    "/opt/env/current/bin/sealift-train run --parallel-method fsdp --ranks 2": "wants an installed trainer: train.installed",
    "python3 bench/peers.py Qwen2.5-1.5B --tuners lora --ranks 4 > peers.jsonl": "minutes: train.gpu_script runs it",
    "sealift-train compare sealift-race/fsdp peers.jsonl": "compare_test reads lines of peers.py",
    "sealift-train race samples/which_method/olmo_1b.toml --verb pretrain --ranks 4 --dataset tokens":
        "gigabytes of memory, and hours",
    "srun -N2 --ntasks-per-node=8 sealift-launch python3 train.py": SLURM,
    "srun -N2 --ntasks-per-node=1 sealift-launch --nproc 8 python3 train.py": SLURM,
    "srun -N2 --ntasks-per-node=1 sealift-launch --nproc 8 --per-host swift sft …": SLURM,
    "srun sealift-train sft --config job.toml": SLURM,
    "[ $? -eq 143 ] && scontrol requeue $SLURM_JOB_ID": SLURM,
    "samples/log_to_tracker.py OUT --to wandb --project tuning": "wants wandb: tests/train/monitor, by hand",
    "samples/log_to_tracker.py OUT --to mlflow --folder /srv/mlflow": "wants mlflow: tests/train/monitor, by hand",
}
JOB = """model = "Qwen2.5-7B"
dataset = ["chats.tokens"]
tuner_type = "lora"
max_length = 64
"""
YAML = """model_name_or_path: Qwen2.5-7B
stage: sft
finetuning_type: lora
dataset: chats
dataset_dir: .
template: qwen
cutoff_len: 128
output_dir: saved_lora
overwrite_output_dir: true
"""
SIZES = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 8,
         "num_key_value_heads": 8, "vocab_size": 2048, "max_position_embeddings": 4096, "rms_norm_eps": 1e-6,
         "rope_theta": 1e6, "hidden_act": "silu", "tie_word_embeddings": False}
EXPERTS = {"moe_intermediate_size": 32, "num_experts": 16, "num_experts_per_tok": 2, "norm_topk_prob": True, "head_dim": 8,
           "decoder_sparse_step": 1, "mlp_only_layers": []}


def make_site(site):
    (site / "home").mkdir()
    made_model.make_model(site / "Qwen2.5-7B", max_position_embeddings=4096)
    (site / "Qwen2.5-0.5B").symlink_to("Qwen2.5-7B")
    made_model.write_lines(site / "chats.jsonl", made_model.chat_lines(64, 3))
    made_model.write_lines(site / "pairs.jsonl", made_model.pair_lines(32, 4))
    made_model.write_lines(site / "text.jsonl", made_model.text_lines(64, 5))
    (site / "dataset_info.json").write_text(json.dumps({"chats": {
        "file_name": "chats.jsonl", "formatting": "sharegpt", "columns": {"messages": "messages"},
        "tags": {"role_tag": "role", "content_tag": "content", "user_tag": "user", "assistant_tag": "assistant"}}}))
    (site / "raced.toml").write_text(JOB)
    (site / "qwen_lora.yaml").write_text(YAML)
    (site / "train.py").write_text("import os\nassert int(os.environ['RANK']) < int(os.environ['WORLD_SIZE']) == 2\n")
    for name, config in {"qwen2.5-72b": {"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], **SIZES},
                         "qwen3-235b": {"model_type": "qwen3_moe", "architectures": ["Qwen3MoeForCausalLM"], **SIZES,
                                        **EXPERTS}}.items():
        (site / name).mkdir()
        (site / name / "config.json").write_text(json.dumps(config))


with tempfile.TemporaryDirectory() as folder:
    site = pathlib.Path(folder)
    make_site(site)
    pages = Pages(site, RUN, NOT_HERE, path=[*BIN, pathlib.Path(sys.executable).parent])
    pages.execute("sealift-train tokenize --model Qwen2.5-7B --data chats.jsonl --out chats.tokens", {0}, "tokens")
    for page in PAGES:
        if (site / "saved").exists():
            shutil.rmtree(site / "saved")
        pages.run_page(page, lambda command: page != "README.md" or "sealift-train" in command)
    pages.finish()
