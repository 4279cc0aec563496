# SPDX-License-Identifier: Apache-2.0
# Before end_to_end.air_gap: a Qwen2.5 of 20 million parameters, its tokenizer and chats, and a job that packs them with
# all that samples/air_gap.toml does, and with what tokenizes inside.
# Random weights and a made language, so that nothing is downloaded but `tokenizers`.
#   make_job.py OUT       OUT/made/{qwen,chats,job.toml}
import pathlib
import shutil
import sys

PROJECT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(PROJECT / "tests/train/loop"))
import made_model as made  # noqa: E402

MORE = """
[[model]]
source = "qwen"

[[data]]
source = "chats"
"""


def job():
    """The sample's job, from another folder, with more in it."""
    text = (PROJECT / "samples/air_gap.toml").read_text()
    text = text.replace('from = "../', f'from = "{PROJECT}/')
    with_tokenizers = text.replace('requirements = ["torch==2.11.0", "pip"]', 'requirements = ["torch==2.11.0", "pip", "tokenizers"]')
    assert with_tokenizers != text, "samples/air_gap.toml has other requirements now"
    return with_tokenizers + MORE


out = pathlib.Path(sys.argv[1]) / "made"
shutil.rmtree(out, ignore_errors=True)
out.mkdir(parents=True)
made.make_model(out / "qwen", vocab_size=4096, hidden_size=384, intermediate_size=1024, num_hidden_layers=12,
                num_attention_heads=6, num_key_value_heads=2, tie_word_embeddings=True)
(out / "chats").mkdir()
made.write_lines(out / "chats/train.jsonl", made.chat_lines(160, 1))
made.write_lines(out / "chats/evaluation.jsonl", made.chat_lines(16, 2))
(out / "job.toml").write_text(job())
