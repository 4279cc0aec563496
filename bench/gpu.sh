#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Everything that only a GPU can show, in one command: builds, runs the gpu tests, sealift-train on CPU and GPU, ranks that
# share a GPU over NCCL, the Llama against Python, and fine-tuning against transformers and PEFT, with a profile; writes a
# page of what it measured, with device and versions. An hour, and 80 GB on the device.
#   bench/gpu.sh [--device cuda|cpu] [--tiny] [--build DIR] [--out PAGE] [--only PART,PART]
# --device cpu --tiny: the same without a GPU and in small, so that the script is known to work; the page then says that it
# measured nothing. A part that fails, or is not done within its time, does not stop the others; those are named at the end, and
# so is what is left out since Python has no transformers or PEFT. --build: a build folder that is up to date already. PAGE:
# bench/GPU.md, or build/gpu_cpu.md for the CPU. PYTHONPATH: where transformers and PEFT are; unset, build/prerequisites/peers.
# GPU_SECONDS_PART, as GPU_SECONDS_llama: the time of that part instead of its own.
set -euo pipefail
cd "$(dirname "$0")/.."
device=cuda tiny= build= out= only=
while [ $# -gt 0 ]; do
  case $1 in
    --device) device=$2; shift ;;
    --tiny) tiny=1 ;;
    --build) build=$2; shift ;;
    --out) out=$2; shift ;;
    --only) only=,$2,; shift ;;
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
ended= running=
trap 'ended=143; [ -z "$running" ] || kill -TERM "$running"' TERM INT HUP

failed= left_out= parts=,
# page: writes it anew, so that a later part cannot lose the figures of those before.
page() {
  if "$python" bench/gpu_page.py "$log" "$device" "$tiny" >"$out.partial"; then
    mv "$out.partial" "$out"
  else
    echo "gpu.sh: the page was not written; $out is as it was before this part" >&2
    [[ $failed == *\ page* ]] || failed+=" page"
  fi
}

# part NAME SECONDS COMMAND...: runs it for at most so long, with all that it starts (limited.py); keeps what it says on stdout
# in NAME.out, on stderr in NAME.err, its code in NAME.code; 77 is of what cannot be run here.
part() {
  local name=$1 seconds=$2 code=0 said copied
  local own=GPU_SECONDS_$name
  shift 2
  parts+=$name,
  [ -z "$only" ] || [[ $only == *,$name,* ]] || return 0
  [ -z "$ended" ] || return 0
  echo "gpu.sh: $name" >&2
  exec {said}> >(tee "$log/$name.err" >&2)
  copied=$!
  "$python" -SE bench/limited.py "${!own:-$seconds}" "$@" >"$log/$name.out" 2>&"$said" {said}>&- &
  running=$!
  wait "$running" || code=$?
  if [ -n "$ended" ]; then wait "$running" || code=$?; fi  # a signal ended the first one
  running=
  exec {said}>&-
  wait "$copied" || true
  echo $code >"$log/$name.code"
  case $code in
    0) ;;
    77) echo "gpu.sh: $name is left out" >&2; left_out+=" $name" ;;
    *) echo "gpu.sh: $name exited with $code" >&2; failed+=" $name" ;;
  esac
  page
}

# The tests need no GPU's worth of memory, so they come first.
if [ $device = cuda ]; then
  part tests 1200 "$build/bin/gpu_test"
  if [ "$(cat "$log/tests.code" 2>&-)" = 77 ]; then echo "gpu.sh: no GPU was found" >&2; exit 77; fi
else
  part tests 300 "$build/bin/staging_test"
fi

# The trainer: what a CPU computes, then the device; `check` holds the losses together. One thread on the CPU in small: of
# several that share cores with other work each waits for the others in a loop, and a step takes twenty times as long.
train=$build/bin/sealift-train
steps=100 ranks=2
[ -z "$tiny" ] || steps=5
gpus=1
[ $device = cpu ] || gpus=$("$python" -c 'import torch; print(torch.cuda.device_count())')
export log train steps tiny device gpus ranks
# train_run NAME OPTIONS...: a run that did not end is left out of the comparison, and fails the part.
train_run() {
  if "$train" run --steps "$steps" ${tiny:+--threads 1} --out "$log/$1" "${@:2}"; then results+=("$log/$1/result.json"); else broken+=" $1"; fi
}
# hold TOLERANCE: the runs in `results` against the first; in small nothing is learnt: only that the runs agree.
hold() {
  "$train" check "${results[@]}" --tolerance "$1" ${tiny:+--floor-factor 9} || broken+=" check"
  [ -z "$broken" ] || { echo "gpu.sh: failed:$broken" >&2; return 1; }
}
trainer_fp32() {
  local results=() broken=
  train_run cpu --device cpu
  train_run alone --device "$device"
  train_run fsdp --device "$device" --parallel-method fsdp
  for method in ddp fsdp; do
    [ "$gpus" -gt 1 ] && [ $((32 % gpus)) = 0 ] || continue
    train_run all_$method --device cuda --parallel-method $method --ranks "$gpus"
  done
  hold 1e-4
}
trainer_mixed() {
  local results=() broken=
  train_run mixed_cpu --device cpu --parallel-method fsdp --precision mixed
  train_run mixed --device "$device" --parallel-method fsdp --precision mixed
  hold 2e-2
}
# Ranks that share one GPU, over NCCL: none of its figures is one of the device. SEALIFT_TEST_SHARED_DEVICE is the door for it.
trainer_shared() {
  local results=() broken=
  export SEALIFT_TEST_SHARED_DEVICE=yes NCCL_SOCKET_IFNAME=lo NCCL_IB_DISABLE=1 CUDA_VISIBLE_DEVICES=0
  if [ -e "$log/cpu/result.json" ]; then results=("$log/cpu/result.json"); else train_run cpu --device cpu; fi
  train_run shared_ddp --device "$device" --parallel-method ddp --ranks "$ranks"
  train_run shared_fsdp --device "$device" --parallel-method fsdp --ranks "$ranks"
  hold 1e-4
}
export -f train_run hold trainer_fp32 trainer_mixed trainer_shared
for name in trainer_fp32 trainer_mixed trainer_shared; do part $name 1200 bash -c "$name"; done
if [ -n "$tiny" ]; then
  part collectives 120 "$python" bench/collectives.py --device "$device" --ranks 2 --mib 0.004,1 --rounds 3
else
  part collectives 600 "$python" bench/collectives.py --device "$device"
fi

llamas='^llama_'
export BENCH_DEVICE=$device BENCH_ROUNDS=${BENCH_ROUNDS:-6} BENCH_SECONDS=${BENCH_SECONDS:-5}
[ -z "$tiny" ] || { llamas='^llama_(pure_vs_eager|mixed_vs_compile)'; export BENCH_TINY=1 BENCH_ROUNDS=2 BENCH_STEPS=12; }
part llama 1800 "$python" bench/compare_training.py "$build/bin/sealift-bench-training" "$llamas"

# Fine-tuning: ours, and each of Python's ways to train, eager and each layer compiled; what a step asks of the device.
export PYTHONPATH=${PYTHONPATH-$PWD/build/prerequisites/peers}
# tuning NAME SECONDS OPTIONS...
tuning() {
  local model=$log/model shape=tiny
  [ -n "$tiny" ] || { model=build/bench/qwen1.5b; shape=qwen1.5b; }
  part "$1" "$2" "$python" bench/fine_tuning.py "$model" --make $shape --device "$device" --program "$train" \
    --profile --profiler "$build/bin/sealift-bench-profile" "${@:3}"
}
if [ -n "$tiny" ]; then
  tuning tuning 400 --tuners lora,full,qlora --rows 2 --time 32 --steps 5 --precision fp32 --backend aot_eager \
    --runs lora_plain_compiled,lora_fully_shard_eager,full_ddp_eager,full_fsdp1_eager,qlora_plain_eager
  tuning tuning_own 200 --own-kernels --tuners lora --methods plain --modes eager --rows 2 --time 32 --steps 5 --precision fp32
else
  tuning tuning_exact 900 --tuners lora,full,qlora --methods plain --modes eager --rows 1 --time 512 --steps 5 --precision fp32
  tuning tuning_lora 1800 --tuners lora --rows $((4 * gpus)) --precision bf16
  tuning tuning_qlora 1800 --tuners qlora --rows $((4 * gpus)) --precision bf16 --recompute
  tuning tuning_full 1800 --tuners full --rows $((2 * gpus)) --precision mixed
  tuning tuning_own 1800 --own-kernels --tuners lora,full,qlora --methods plain --modes eager --rows 2 --precision mixed
fi

for name in ${only//,/ }; do
  [[ $parts == *,$name,* ]] || { echo "gpu.sh: --only: there is no part '$name'; use some of $(echo ${parts//,/ })" >&2; failed+=" $name"; }
done
if [ -n "$ended" ]; then
  echo "gpu.sh: told to end; what it has so far is in $out" >&2
  exit "$ended"
fi
echo "gpu.sh: wrote $out" >&2
[ -z "$left_out" ] || echo "gpu.sh: these parts were left out:$left_out; what they need is above and in $out" >&2
if [ -n "$failed" ]; then
  echo "gpu.sh: these parts failed:$failed; what they say is above and in $out" >&2
  exit 1
fi
