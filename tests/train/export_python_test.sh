#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Python's safetensors, upstream's reader, opens what is exported, and finds in it what the ranks saved.
# usage: export_python_test.sh SEALIFT_TRAIN PYTHON
set -eu
train=$1 python=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"$python" -c 'import numpy, safetensors.torch' || {
  echo "FAILED: $python has no safetensors and numpy; cmake/prerequisites.sh installs them" >&2
  exit 1
}

"$train" run --parallel-method fsdp --ranks 3 --global-batch 30 --steps 3 --layers 2 --width 36 --vocabulary 61 \
  --checkpoint-folder saved >/dev/null 2>&1
"$train" export saved model.safetensors
"$train" export saved set --max-file-gb 0.00002
"$train" export saved half.safetensors --bf16

"$python" - <<'EOF'
import glob, hashlib, json, os
import torch
from safetensors import safe_open
from safetensors.torch import load_file

index = json.load(open("saved/step-000003/index.json"))
assert index["step"] == 3 and index["mesh"] == {"replicate": 1, "shard": 3}, index

# The whole model from the ranks' pieces, by the format's description alone.
expected = {name: torch.full([torch.Size(entry["shape"]).numel()], float("nan")) for name, entry in index["parameters"].items()}
for file in index["files"]:
    path = "saved/step-000003/" + file["name"]
    assert hashlib.sha256(open(path, "rb").read()).hexdigest() == file["sha256"], path
    with safe_open(path, "pt") as pieces:
        for key in pieces.keys():
            if not key.startswith("model/"):
                continue
            name, piece = key.removeprefix("model/"), pieces.get_tensor(key)
            first = int(pieces.metadata()["first/" + name])
            assert expected[name][first:first + piece.numel()].isnan().all(), "written twice"
            expected[name][first:first + piece.numel()] = piece
expected = {name: flat.reshape(index["parameters"][name]["shape"]) for name, flat in expected.items()}
assert len(expected) == 28 and not any(tensor.isnan().any() for tensor in expected.values())

def same(got, wanted):
    assert got.keys() == wanted.keys()
    for name, tensor in wanted.items():
        assert got[name].dtype == tensor.dtype and torch.equal(got[name], tensor), name

same(load_file("model.safetensors"), expected)
same(load_file("half.safetensors"), {name: tensor.bfloat16() for name, tensor in expected.items()})
weight_map = json.load(open("set/model.safetensors.index.json"))["weight_map"]
assert set(weight_map.values()) == {os.path.basename(path) for path in glob.glob("set/*.safetensors")}
assert len(set(weight_map.values())) > 2
got = {}
for file in set(weight_map.values()):
    with safe_open("set/" + file, "pt") as part:
        assert part.metadata()["format"] == "pt"
        got |= {name: part.get_tensor(name) for name in part.keys() if weight_map[name] == file}
same(got, expected)
print(f"Python's safetensors reads {len(expected)} tensors as they were saved")
EOF
