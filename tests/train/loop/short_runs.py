# SPDX-License-Identifier: Apache-2.0
# Short runs of sealift-train on a made model, and the tokens that they made: what tests of data and of jobs share.
# A run has two steps on the CPU; what counts is read from the token file that it leaves in its folder.
# The program is the first argument of the test; further ones name the parts that are run.
import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import made_model as made  # noqa: E402

TRAIN = sys.argv[1]
ENVIRONMENT = {key: value for key, value in os.environ.items() if not key.startswith(("SEALIFT_TRAIN_", "RANK", "WORLD"))}
ENVIRONMENT.update(SEALIFT_TRAIN_DEVICE="cpu", SEALIFT_TRAIN_THREADS="1", SEALIFT_TRAIN_PYTHON=sys.executable)


FOLDER = tempfile.TemporaryDirectory()
WORK = pathlib.Path(FOLDER.name)
MODEL = made.make_model(WORK / "model")
TOKENIZER = made.tokenizers.Tokenizer.from_file(str(MODEL / "tokenizer.json"))


def check(holds, what):
    if not holds:
        sys.exit(f"FAILED: {what}")


def run(*arguments, expect=0):
    done = subprocess.run([TRAIN, *map(str, arguments)], capture_output=True, text=True, env=ENVIRONMENT, timeout=200)
    if expect is not None and done.returncode != expect:
        sys.exit(f"FAILED: '{' '.join(map(str, arguments))}' exited with {done.returncode}, expected {expect}\n"
                 f"{done.stdout[-2000:]}\n{done.stderr[-3000:]}")
    return done


def trained(name, *arguments, verb="sft"):
    """What a run of two steps made of its data: sequences of (ids, whether each counts), and what it said."""
    out = WORK / f"out-{name}"
    done = run(verb, "--output_dir", out, "--max_steps", "2", "--save_strategy", "no", *arguments)
    result = json.loads((out / "result.json").read_text())
    check(len(result["losses"]) == 2 and all(loss == loss for loss in result["losses"]), f"{name}: {result['losses']}")
    return made.read_tokens(out / "tokens" / "dataset.tokens"), done.stderr


def learned(sequences):
    """The texts of the runs of tokens that count, of each sequence."""
    texts = []
    for ids, counts in sequences:
        runs, run_ = [], []
        for token, counted in [*zip(ids, counts), (None, False)]:
            if counted:
                run_.append(token)
            elif run_:
                runs, run_ = [*runs, TOKENIZER.decode(run_, skip_special_tokens=False)], []
        texts.append(runs)
    return texts


def write(name, text):
    path = WORK / name
    path.write_text(text)
    return path


def chat(*turns):
    return {"messages": [{"role": role, "content": content, **more} for role, content, more in turns]}


TWO_ANSWERS = chat(("user", "one two", {}), ("assistant", "red", {"weight": 0, "learn": False}), ("user", "three", {}),
                   ("assistant", "blue", {}))
FIRST, SECOND = "red<|im_end|>\n", "blue<|im_end|>\n"
ONE_STEP = ["--per_device_train_batch_size", "1", "--gradient_accumulation_steps", "1", "--lora_rank", "2"]


def llama_factory_data():
    folder = WORK / "data"
    if not folder.is_dir():
        folder.mkdir()
        made.write_lines(folder / "mine.jsonl", [{"instruction": "one", "input": "two", "output": "blue"}] * 6)
        (folder / "dataset_info.json").write_text(json.dumps({"mine": {"file_name": "mine.jsonl"}}))
    return folder


def run_parts(parts):
    """Those that the command line names, or all."""
    for part in parts:
        if len(sys.argv) > 2 and part.__name__ not in sys.argv[2:]:
            continue
        part()
        print("good:", part.__name__.replace("_", " "), flush=True)
