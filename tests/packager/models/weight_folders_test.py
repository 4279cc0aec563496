#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Folders whose weights contradict their config or index, loaded by transformers and locked by sealift-pack:
# what transformers refuses or fills with random values is refused, where loaders differ a line says so, the rest is taken.
# usage: weight_folders_test.py BIN UV     with the Python of torch; PYTHONPATH: the peers. Skipped (77) without its tools.
import http.server
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "support"))
from tiny_index import write_wheel

os.environ["HF_HUB_OFFLINE"] = "1"
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "../../train/loop"))
BIN, UV = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
PYTHON = "/usr/bin/python3.11"
if not (UV.exists() and os.path.exists(PYTHON) and all(map(shutil.which, ("bwrap", "patchelf")))):
    print("skipped: needs uv, python3.11, bubblewrap and patchelf")
    sys.exit(77)

import torch  # noqa: E402
import transformers  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

import made_model  # noqa: E402

transformers.logging.set_verbosity_error()
FOLDER = tempfile.TemporaryDirectory()
WORK = pathlib.Path(FOLDER.name)
BASE = made_model.make_model(WORK / "base")
TENSORS = load_file(BASE / "model.safetensors")
OTHER = {name: value + 0.1 for name, value in TENSORS.items()}
IDS = torch.arange(3, 67).view(2, 32)


def write(path, tensors):
    save_file({name: value.clone().contiguous() for name, value in tensors.items()}, path, metadata={"format": "pt"})


def folder(name, tensors=None, **config):
    path = WORK / name
    shutil.copytree(BASE, path)
    if tensors is not None:
        write(path / "model.safetensors", tensors)
    (path / "config.json").write_text(json.dumps({**json.loads((path / "config.json").read_text()), **config}))
    return path


def shards(path, tensors, single, writes=True, wrong=()):
    """Two parts and their index; `single`: whether model.safetensors stays beside them."""
    where = {}
    for number in (0, 1):
        name = f"model-{number + 1:05}-of-00002.safetensors"
        part = dict(list(tensors.items())[number::2])
        where.update(dict.fromkeys(part, name))
        if writes:
            write(path / name, part)
    for name in wrong:
        where[name] = next(file for file in where.values() if file != where[name])
    (path / "model.safetensors.index.json").write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": where}))
    if not single:
        (path / "model.safetensors").unlink()
    return path


def body():
    return {name.removeprefix("model."): value for name, value in TENSORS.items() if name != "lm_head.weight"}


def with_head(head):
    return {**TENSORS, "lm_head.weight": head}


def make():
    """name -> what the packager says: a refusal (True), a word of caution (False), or nothing (None); and a part of it."""
    embedding = TENSORS["model.embed_tokens.weight"]
    folder("tied", {name: value for name, value in TENSORS.items() if name != "lm_head.weight"}, tie_word_embeddings=True)
    folder("tied_same", with_head(embedding), tie_word_embeddings=True)
    folder("tied_other", tie_word_embeddings=True)
    shards(folder("parts"), TENSORS, single=False)
    shards(folder("both_sets"), OTHER, single=True)
    shards(folder("old_index"), TENSORS, single=True, writes=False)
    shards(folder("files_gone"), TENSORS, single=False, writes=False)
    shards(folder("wrong_map"), TENSORS, single=False, wrong=["model.norm.weight"])
    write(shards(folder("unlisted_part"), TENSORS, single=False) / "model-00001-of-00003.safetensors", OTHER)
    write(folder("part_left") / "model-00001-of-00003.safetensors", OTHER)
    for name, prefix in (("compiled", "_orig_mod."), ("parallel", "module."), ("peft", "base_model.model."),
                         ("sharded", "_fsdp_wrapped_module.")):
        folder(name, {prefix + key: value for key, value in TENSORS.items()})
    for name, part in (("layers_compiled", "_orig_mod"), ("layers_sharded", "_fsdp_wrapped_module"),
                       ("layers_recomputed", "_checkpoint_wrapped_module")):
        folder(name, {key.replace("layers.0.", f"layers.0.{part}."): value for key, value in TENSORS.items()})
    folder("adapted", {key.replace("q_proj.", "q_proj.base_layer."): value for key, value in TENSORS.items()})
    folder("head_rows", with_head(TENSORS["lm_head.weight"][:304]))
    folder("body", body())
    folder("rows_more", vocab_size=304)
    folder("rows_less", vocab_size=384)
    return {"base": None, "tied": None, "tied_same": None, "parts": None,
            "tied_other": (False, "ties lm_head to the embedding, and another lm_head.weight is stored"),
            "both_sets": (False, "two sets of weights: transformers takes model.safetensors, vLLM the 2 files"),
            "old_index": (False, "names files that are not there, such as model-00001-of-00002.safetensors"),
            "files_gone": (True, "names files that are not there: model-00001-of-00002.safetensors"),
            "wrong_map": (False, "that are in another of its files: model.norm.weight"),
            "unlisted_part": (False, "names none of them, so nothing reads them"),
            "part_left": (False, "transformers takes the one file, vLLM reads all of them"),
            "compiled": (True, "begins with _orig_mod."), "parallel": (True, "begins with module."),
            "peft": (True, "begins with base_model.model."), "sharded": (True, "begins with _fsdp_wrapped_module."),
            "layers_compiled": (True, "has ._orig_mod. in it"),
            "layers_sharded": (True, "has ._fsdp_wrapped_module. in it"),
            "layers_recomputed": (True, "has ._checkpoint_wrapped_module. in it"),
            "adapted": (True, "has .base_layer. in it"), "head_rows": (True, "the lm_head has 304 rows"),
            "body": (False, "has no lm_head.weight, since the model's body was saved alone"),
            "rows_more": (True, "the embedding has 320 rows, and config.json says vocab_size 304"),
            "rows_less": (True, "the embedding has 320 rows, and config.json says vocab_size 384")}


def theirs(name):
    """The loss, or why there is none."""
    try:
        model, info = transformers.AutoModelForCausalLM.from_pretrained(WORK / name, dtype=torch.float32,
                                                                        output_loading_info=True)
    except (RuntimeError, OSError, ValueError) as error:
        return type(error).__name__
    if info["missing_keys"]:
        return f"{len(info['missing_keys'])} random"
    with torch.no_grad():
        return round(float(model.eval()(input_ids=IDS, labels=IDS).loss), 5)


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def lock(names):
    job = f'name = "demo"\nversion = 1\n[target]\narch = "x86_64"\nglibc = "2.36"\n[python]\nversion = "3.11"\n' \
          f'interpreter = "{PYTHON}"\ndefault_index = "{INDEX}/simple"\nrequirements = ["wanted"]\n'
    job += "".join(f'[[model]]\nsource = "{WORK / name}"\ninto = "models/{name}"\n' for name in names)
    (WORK / "job.toml").write_text(job)
    environment = {"PATH": os.environ["PATH"], "HOME": str(WORK / "home"), "SEALIFT_CACHE": str(WORK / "cache"),
                   "SEALIFT_UV": str(UV), "UV_NO_CACHE": "1"}
    return subprocess.run([BIN / "sealift-pack", "lock", "job.toml"], env=environment, cwd=WORK, text=True,
                          capture_output=True)


def said_of(text, name):
    return [line for line in text.splitlines() if f"{WORK / name}:" in line or f"models/{name}:" in line]


write_wheel(WORK / "served/simple/wanted", "wanted")
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), lambda *words: Quiet(*words, directory=str(WORK / "served")))
threading.Thread(target=server.serve_forever, daemon=True).start()
INDEX = f"http://127.0.0.1:{server.server_address[1]}"
expected = make()
refused = lock(expected)
taken = lock([name for name, say in expected.items() if not (say and say[0])])
bad = 0 if refused.returncode == 4 and taken.returncode == 0 else 1
if bad:
    print(refused.returncode, refused.stderr, taken.returncode, taken.stderr)
peers = {name: theirs(name) for name in expected}
for name, say in expected.items():
    peer, lines = peers[name], said_of(refused.stderr, name)
    loads = not isinstance(peer, str)
    # A body without a head is a model of its own where no text is made.
    good = (not lines if say is None else any(say[1] in line for line in lines)) and \
        (loads == (say is None or not say[0]) or name == "body")
    print(f"{'good' if good else 'FAILED'}: {name}: transformers {peer}; packager "
          f"{'takes' if say is None else 'refuses' if say[0] else 'says'}: {lines}")
    bad += not good
one_model = ("base", "parts", "tied_other", "both_sets", "old_index", "wrong_map", "unlisted_part", "part_left")
if len({peers[name] for name in one_model}) != 1:
    print("FAILED: transformers does not take the set that the packager names:", peers)
    bad += 1
sys.exit(bad > 0)
