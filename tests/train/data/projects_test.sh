#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the trainers that projects_test.py holds ours to, each in a Python of its own, and runs it: 3 GB, by hand.
#   ctest -C slow -R training_projects       build/projects keeps what was installed
# They get the torch that is there: PyPI's for these versions would be gigabytes of CUDA each.
# usage: projects_test.sh PREREQUISITES FOLDER SCRIPTS TOKEN_FILE_DUMP PAGE
set -eu
here=$(cd "$(dirname "$0")" && pwd)
uv=$1/uv/bin/uv torch=$1/torch packages=lib/python3.11/site-packages where=$2
mkdir -p "$where"
for name in torch torchvision torchaudio triton bitsandbytes xformers gradio opencv-python av nvidia-ml-py deepspeed; do
  echo "$name; sys_platform == 'never'"
done > "$where/left_out.txt"
install() {  # NAME REQUIREMENT…
  name=$1 && shift
  [ -e "$where/$name/complete" ] && return
  "$uv" venv -q --clear --python "$torch/bin/python" "$where/$name"
  "$uv" pip install -q --python "$where/$name/bin/python" --override "$where/left_out.txt" "$@"
  echo "$(cd "$torch" && pwd)/$packages" > "$where/$name/$packages/zz_torch.pth"
  touch "$where/$name/complete"
}
install ms-swift ms-swift==4.6.0
install axolotl axolotl==0.19.0
install llama-factory llamafactory==0.9.5
# It imports these, whatever is trained; without what they need, which is torch.
"$uv" pip install -q --no-deps --python "$where/llama-factory/bin/python" torchaudio==2.11.0 torchvision==0.26.0
shift 2
PYTHONPATH="$(dirname "$uv")/../../peers" "$torch/bin/python" "$here/projects_test.py" "$@" trl="$torch/bin/python" \
  ms-swift="$where/ms-swift/bin/python" axolotl="$where/axolotl/bin/python" llama-factory="$where/llama-factory/bin/python"
