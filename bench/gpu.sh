#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Everything that only a GPU can show, in one command: builds, runs the gpu tests, sealift-train on CPU and GPU, and the Llama
# against Python; writes a page of what it measured, with device and versions. Quarter of an hour, and 80 GB on the device.
#   bench/gpu.sh [--device cuda|cpu] [--tiny] [--build DIR] [--out PAGE]
# --device cpu --tiny: the same without a GPU and in small, so that the script is known to work; the page then says that it measured
# nothing. --build: a build folder that is up to date already. PAGE: bench/GPU.md, or build/gpu_cpu.md for the CPU.
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

# part NAME COMMAND...: runs it, keeps what it says on stdout in NAME.out, on stderr in NAME.err, its code in NAME.code
part() {
  name=$1
  shift
  echo "gpu.sh: $name" >&2
  code=0
  "$@" >"$log/$name.out" 2> >(tee "$log/$name.err" >&2) || code=$?
  echo $code >"$log/$name.code"
  [ $code = 0 ] || echo "gpu.sh: $name exited with $code" >&2
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
[ -z "$tiny" ] || steps=10
run() { "$train" run --steps $steps --out "$log/$1" "${@:2}"; }
gpus=1
[ $device = cpu ] || gpus=$("$python" -c 'import torch; print(torch.cuda.device_count())')
trainer() {
  run cpu --device cpu
  run alone --device $device
  run fsdp --device $device --parallel-method fsdp
  results=("$log/cpu/result.json" "$log/alone/result.json" "$log/fsdp/result.json")
  for method in ddp fsdp; do
    [ "$gpus" -gt 1 ] && [ $((32 % gpus)) = 0 ] || continue
    run all_$method --device cuda --parallel-method $method --ranks "$gpus"
    results+=("$log/all_$method/result.json")
  done
  # In small nothing is learnt: only that the runs agree.
  "$train" check "${results[@]}" --tolerance 1e-4 ${tiny:+--floor-factor 9}
  run mixed_cpu --device cpu --parallel-method fsdp --precision mixed
  run mixed --device $device --parallel-method fsdp --precision mixed
  "$train" check "$log/mixed_cpu/result.json" "$log/mixed/result.json" --tolerance 2e-2 ${tiny:+--floor-factor 9}
}
part trainer trainer

export BENCH_DEVICE=$device BENCH_ROUNDS=${BENCH_ROUNDS:-6} BENCH_SECONDS=${BENCH_SECONDS:-5}
[ -z "$tiny" ] || export BENCH_TINY=1 BENCH_ROUNDS=2 BENCH_SECONDS=0.2
part llama "$python" bench/compare_training.py "$build/bin/sealift-bench-training" '^llama_'

"$python" bench/gpu_page.py "$log" "$device" "$tiny" >"$out.partial"
mv "$out.partial" "$out"
echo "gpu.sh: wrote $out" >&2
! grep -vqx 0 "$log"/*.code
