# SPDX-License-Identifier: Apache-2.0
# Before ms_swift_test.sh: a made Qwen, chats, and samples/ms_swift's job with these in place of the hub's model and the site's data.
#   make_swift_job.py OUT STAGE       OUT/made/{qwen,examples,job.toml}; STAGE: where our programs are installed
import pathlib
import re
import shutil
import sys

PROJECT = pathlib.Path(__file__).resolve().parents[3]
SAMPLE = PROJECT / "samples/ms_swift"
sys.path.insert(0, str(PROJECT / "tests/train/loop"))
import made_model as made  # noqa: E402


def job(stage):
    text = (SAMPLE / "ms_swift.toml").read_text()
    text = text.replace('"../../build/release/stage"', f'"{stage}"').replace('source = "presets"', f'source = "{SAMPLE}/presets"')
    text, replaced = re.subn(r'(?m)^repo = .*$', 'source = "qwen"', text)
    assert replaced == 1, "samples/ms_swift/ms_swift.toml has another model now"
    # For zero3, as the sample's README says, and with the operator that DeepSpeed on processors asks for when it starts.
    requirements = 'requirements = ["ms-swift>=4.6,<4.7", "torch==2.11.0"'
    assert requirements in text, "samples/ms_swift/ms_swift.toml has other requirements now"
    text = text.replace(requirements, requirements + ', "deepspeed>=0.19"')
    readme = (SAMPLE / "README.md").read_text()
    return text + re.search(r"(?s)```toml\n(\[python.extra_build_dependencies\].*?)```", readme).group(1)


out = pathlib.Path(sys.argv[1]) / "made"
shutil.rmtree(out, ignore_errors=True)
(out / "examples").mkdir(parents=True)
made.make_model(out / "qwen", vocab_size=4096, hidden_size=128, intermediate_size=256, num_hidden_layers=4,
                num_attention_heads=4, num_key_value_heads=2, tie_word_embeddings=True)
made.write_lines(out / "examples/train.jsonl", made.chat_lines(64, 1))
made.write_lines(out / "examples/few.jsonl", made.chat_lines(8, 2))  # what two ranks take in one step
(out / "job.toml").write_text(job(sys.argv[2]))
