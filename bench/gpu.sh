#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Everything that only a GPU can show, in one command: builds, runs the gpu tests, sealift-train on CPU and GPU, the Llama
# against Python, and what Python does by itself (peers.py); writes a page of what it measured, with device and versions.
# Half an hour, and 80 GB on the device.
#   bench/gpu.sh [--device cuda|cpu] [--tiny] [--build DIR] [--out PAGE]
# --device cpu --tiny: the same without a GPU and in small, so that the script is known to work; the page then says that it
# measured nothing. A part that fails does not stop the others; those that failed are named at the end, and so is what is left
# out since Python has no transformers or PEFT. --build: a build folder that is up to date already. PAGE: bench/GPU.md, or
# build/gpu_cpu.md for the CPU. PYTHONPATH: where transformers and PEFT are; unset, build/prerequisites/peers.
set -euo pipefail
cd "$(dirname "$0")/.."
device=cuda tiny= build= out=
while [ $# -gt 0 ]; do
  case $1 in
    --device) device=$2; shift ;;
    --tiny) tiny=1 ;;
    --build) build=$2; shift ;;
    --out) out=$2; shift ;;
    *) echo "gpu.sh: unknown argument '$1'; see its head" >&2; exit 2 ;;
  esac
  shift
done
case $device in
  cuda) out=${out:-bench/GPU.md} ;;
  cpu) out=${out:-build/gpu_cpu.md} ;;
  *) echo "gpu.sh: --device is '$device'; use cuda or cpu" >&2; exit 2 ;;
esac
python=build/prerequisites/torch/bin/python

if [ -z "$build" ]; then
  cmake/prerequisites.sh build
  build=build/release
  cmake --preset release >&2
  cmake --build $build --target bench sealift-train gpu_test staging_test >&2
fi
log=$(mktemp -d)
trap 'rm -rf "$log"' EXIT

# part NAME COMMAND...: runs it and writes the page anew, so that a later part cannot lose its figures; keeps what it says on
# stdout in NAME.out, on stderr in NAME.err, its code in NAME.code; 77 is of what cannot be run here.
failed= left_out=
part() {
  name=$1
  shift
  echo "gpu.sh: $name" >&2
  code=0
  "$@" >"$log/$name.out" 2> >(tee "$log/$name.err" >&2) || code=$?
  echo $code >"$log/$name.code"
  case $code in
    0) ;;
    77) echo "gpu.sh: $name is left out" >&2; left_out+=" $name" ;;
    *) echo "gpu.sh: $name exited with $code" >&2; failed+=" $name" ;;
  esac
  "$python" bench/gpu_page.py "$log" "$device" "$tiny" >"$out.partial"
  mv "$out.partial" "$out"
}

# The tests need no GPU's worth of memory, so they come first.
if [ $device = cuda ]; then
  part tests "$build/bin/gpu_test"
  if [ "$(cat "$log/tests.code")" = 77 ]; then echo "gpu.sh: no GPU was found" >&2; exit 77; fi
else
  part tests "$build/bin/staging_test"
fi

# The trainer: what a CPU computes, then the device; `check` holds the losses together.
train=$build/bin/sealift-train
steps=100
[ -z "$tiny" ] || { steps=10; export OMP_NUM_THREADS=1; }
gpus=1
[ $device = cpu ] || gpus=$("$python" -c 'import torch; print(torch.cuda.device_count())')
# train_run NAME OPTIONS...: a run that did not end is left out of the comparison, and fails the part.
train_run() {
  if "$train" run --steps $steps ${tiny:+--threads 1} --out "$log/$1" "${@:2}"; then results+=("$log/$1/result.json"); else broken+=" $1"; fi
}
# hold TOLERANCE: the runs in `results` against the first; in small nothing is learnt: only that the runs agree.
hold() {
  "$train" check "${results[@]}" --tolerance "$1" ${tiny:+--floor-factor 9} || broken+=" check"
  [ -z "$broken" ] || { echo "gpu.sh: failed:$broken" >&2; return 1; }
}
trainer_fp32() {
  local results=() broken=
  train_run cpu --device cpu
  train_run alone --device $device
  train_run fsdp --device $device --parallel-method fsdp
  for method in ddp fsdp; do
    [ "$gpus" -gt 1 ] && [ $((32 % gpus)) = 0 ] || continue
    train_run all_$method --device cuda --parallel-method $method --ranks "$gpus"
  done
  hold 1e-4
}
trainer_mixed() {
  local results=() broken=
  train_run mixed_cpu --device cpu --parallel-method fsdp --precision mixed
  train_run mixed --device $device --parallel-method fsdp --precision mixed
  hold 2e-2
}
part trainer_fp32 trainer_fp32
part trainer_mixed trainer_mixed

export BENCH_DEVICE=$device BENCH_ROUNDS=${BENCH_ROUNDS:-6} BENCH_SECONDS=${BENCH_SECONDS:-5}
[ -z "$tiny" ] || export BENCH_TINY=1 BENCH_ROUNDS=2 BENCH_SECONDS=0.2
part llama "$python" bench/compare_training.py "$build/bin/sealift-bench-training" '^llama_'

# What Python does with the same kinds of models: each way to train, eager and each layer compiled.
export PYTHONPATH=${PYTHONPATH-$PWD/build/prerequisites/peers}
# peers OPTIONS...: over a model of random weights.
peers() {
  local model=$log/model shape=tiny
  [ -n "$tiny" ] || { model=build/bench/qwen1.5b; shape=qwen1.5b; }
  [ -e "$model/config.json" ] || "$python" bench/peers.py "$model" --make $shape "$@" >&2 || return
  "$python" bench/peers.py "$model" --device $device "$@"
}
if [ -n "$tiny" ]; then
  part peers peers --modes compiled --rows 2 --time 32 --steps 4 --precision fp32 --backend aot_eager
else
  part peers_lora peers --tuners lora --rows $((4 * gpus)) --precision bf16
  part peers_full peers --tuners full --rows $((2 * gpus)) --precision mixed
fi

echo "gpu.sh: wrote $out" >&2
[ -z "$left_out" ] || echo "gpu.sh: these parts were left out:$left_out; what they need is above and in $out" >&2
if [ -n "$failed" ]; then
  echo "gpu.sh: these parts failed:$failed; what they say is above and in $out" >&2
  exit 1
fi
