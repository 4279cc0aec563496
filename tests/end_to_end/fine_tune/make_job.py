# SPDX-License-Identifier: Apache-2.0
# Before end_to_end.air_gap: a Qwen2.5 of 20 million parameters, its tokenizer and chats, and a job that packs them with
# all that samples/air_gap.toml does, with what tokenizes inside, and with a golden run of this model and these chats.
# Random weights and a made language, so that nothing is downloaded but `tokenizers`.
#   make_job.py OUT       OUT/made/{qwen,chats,golden.toml,job.toml}
import pathlib
import shutil
import subprocess
import sys

PROJECT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(PROJECT / "tests/train/loop"))
import made_model as made  # noqa: E402

MORE = """
[[model]]
source = "qwen"

[[data]]
source = "chats"

[[golden]]
name = "qwen"
job = "golden.toml"
libraries = "LIBRARIES"
"""
GOLDEN = """
name = "qwen"
verb = "sft"
[settings]
model = "models/qwen"
dataset = "data/chats/train.tokens"
tuner_type = "lora"
lora_dropout = 0
max_steps = 3
learning_rate = 1e-3
per_device_train_batch_size = 4
gradient_accumulation_steps = 1
train_dataloader_shuffle = false
"""


def job():
    """The sample's job, from another folder, with more in it."""
    text = (PROJECT / "samples/air_gap.toml").read_text()
    text = text.replace(' = "../', f' = "{PROJECT}/').replace('"air_gap_golden', f'"{PROJECT}/samples/air_gap_golden')
    libraries = next(line for line in text.splitlines() if line.startswith("libraries")).split('"')[1]
    with_tokenizers = text.replace('requirements = ["torch==2.11.0", "pip"]', 'requirements = ["torch==2.11.0", "pip", "tokenizers"]')
    assert with_tokenizers != text, "samples/air_gap.toml has other requirements now"
    return with_tokenizers + MORE.replace("LIBRARIES", libraries)


out = pathlib.Path(sys.argv[1]) / "made"
shutil.rmtree(out, ignore_errors=True)
out.mkdir(parents=True)
made.make_model(out / "qwen", vocab_size=4096, hidden_size=384, intermediate_size=1024, num_hidden_layers=12,
                num_attention_heads=6, num_key_value_heads=2, tie_word_embeddings=True)
(out / "chats").mkdir()
made.write_lines(out / "chats/train.jsonl", made.chat_lines(160, 1))
made.write_lines(out / "chats/evaluation.jsonl", made.chat_lines(16, 2))
subprocess.run([sys.executable, PROJECT / "trainer/data/tokenize", "--model", out / "qwen", "--data",
                out / "chats/train.jsonl", "--out", out / "chats/train.tokens"], check=True, stdout=subprocess.DEVNULL)
(out / "golden.toml").write_text(GOLDEN)
(out / "job.toml").write_text(job())
