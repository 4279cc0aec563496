# SPDX-License-Identifier: Apache-2.0
# samples.jsonl with token numbers -> the same with text, in place.
# Called by a training job after it wrote samples: `--decode FILE --model DIR`.
# Only lines without text are decoded; the file has its name only when it is whole.
import argparse
import json
import os
import pathlib

from model_folder import Model


def with_text(line, tokenizer):
    sample = json.loads(line)
    if "text" not in sample:
        sample["prompt_text"] = tokenizer.decode(sample["prompt"], skip_special_tokens=False)
        sample["text"] = tokenizer.decode(sample["answer"], skip_special_tokens=True)
    return json.dumps(sample, ensure_ascii=False)


def add_texts(arguments):
    parser = argparse.ArgumentParser(prog="sealift-train tokenize")
    parser.add_argument("--decode", type=pathlib.Path, required=True)
    parser.add_argument("--model", type=pathlib.Path, required=True)
    options = parser.parse_args(arguments)
    tokenizer = Model(options.model).tokenizer
    lines = options.decode.read_text(encoding="utf-8").splitlines()
    partial = options.decode.with_name(options.decode.name + ".partial")
    partial.write_text("".join(with_text(line, tokenizer) + "\n" for line in lines), encoding="utf-8")
    os.replace(partial, options.decode)
