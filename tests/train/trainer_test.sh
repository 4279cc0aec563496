#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# sealift-train as a user runs it: three ways to train, the comparison, and what must be refused or ended.
# usage: trainer_test.sh SEALIFT_TRAIN TORCHRUN FAKE_DRIVER
# FAKE_DRIVER: a folder with a libcuda.so.1 that shows two devices and can do nothing
set -eu
train=$1 torchrun=$2 fake_driver=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() {
  echo "FAILED: $1" >&2
  exit 1
}
# expect CODE TEXT COMMAND...: the command exits with CODE and says TEXT on stderr
expect() {
  code=$1 text=$2
  shift 2
  got=0
  "$@" >out.txt 2>err.txt || got=$?
  [ "$got" = "$code" ] || { cat err.txt >&2; fail "'$*' exited with $got, expected $code"; }
  [ -z "$text" ] || grep -qF -- "$text" err.txt || { cat err.txt >&2; fail "'$*' did not say '$text'"; }
}

echo "LibTorch finds the program's epoll_wait (gloo_turns.hpp)"
nm -D --defined-only "$train" | grep -q ' epoll_wait$' || fail "the program does not export epoll_wait"

echo "one process, ddp, fsdp and hsdp: the same losses, near the floor"
export SEALIFT_TRAIN_DEVICE=cpu  # where there is a GPU too: what auto does comes last
export SEALIFT_TRAIN_STEPS=40 SEALIFT_TRAIN_LAYERS=2 SEALIFT_TRAIN_WIDTH=64 SEALIFT_TRAIN_LEARNING_RATE=0.01
expect 0 "single process (no launcher's variables are set)" "$train" run --out none
grep -q '^none x1: loss ' out.txt || fail "no summary on stdout"
[ "$(wc -l <none/log.jsonl)" = 40 ] || fail "log.jsonl has not one line per step"
for method in ddp fsdp; do
  expect 0 "rank 0 of 2, store at 127.0.0.1:" "$train" run --parallel-method $method --ranks 2 --out $method --micro-batches 2
done
echo 'parallel_method = "hsdp"' >job.toml
expect 0 "starting 4 ranks: the host of all 4 ranks (--ranks)" "$train" run --config job.toml --shard-size 2 --ranks 4 --out hsdp
expect 0 "" "$train" check --tolerance 1e-5 --floor-factor 1.35 --json none/result.json ddp/result.json fsdp/result.json hsdp/result.json
grep -q '"verdict": "pass"' out.txt || fail "check printed no verdict"

echo "a run says what it cost, and draws it where it is asked to"
expect 0 "" "$train" run --parallel-method fsdp --ranks 2 --steps 4 --out cost --trace cost/trace.json --tensorboard cost/board \
  --checkpoint-folder cost/saved
grep -q ' tokens/s per device, .* % waiting for communication, peak .* MiB, start-up ' out.txt || fail "no cost on stdout"
for key in exposed_share seconds_per_step start_up_seconds peak_host_memory_bytes checkpoint_seconds; do
  grep -q "\"$key\"" cost/result.json || fail "no $key in result.json"
done
for name in "step 4" "checkpoint 4" "forward root" "gather wait" "reduce root"; do
  grep -q "\"$name" cost/trace.json || fail "no $name in the trace"
done
grep -q '"pid":1' cost/trace.json || fail "rank 1 is not in the trace"
grep -q communication/exposed_share cost/board/events.out.tfevents.* || fail "no scalars"

echo "check can fail, and can be unable to tell"
sed 's/^\(  *\)4\.\([0-9]*\)/\14.5\2/' fsdp/result.json >wrong.json
expect 1 "fsdp x2 differs from none x1 in step 1" "$train" check none/result.json wrong.json
expect 1 "times the entropy of the data" "$train" check none/result.json --floor-factor 1.0
expect 0 "" "$train" run --out short --steps 2
expect 1 "times the entropy of the data" "$train" check short/result.json
grep -q '"verdict": "not judged"' short/result.json || fail "two steps were judged"
expect 1 "the final loss is not near the floor" \
  "$train" run --out untaught --steps 100 --layers 1 --width 16 --learning-rate 1e-9
grep -q '"verdict": "fail"' untaught/result.json || fail "no learning is no failure"
expect 2 "another job" "$train" check none/result.json short/result.json
expect 2 "cannot read missing.json" "$train" check missing.json

echo "what cannot be run is refused before anything starts"
few_files() { (ulimit -n 20 && exec "$@"); }
start=$(date +%s)
expect 1 "may open 20 files (ulimit -Hn), and its part of this job needs 36" \
  few_files "$train" run --parallel-method fsdp --ranks 4 --out few
[ $(($(date +%s) - start)) -le 20 ] || fail "too few files were noticed after $(($(date +%s) - start)) s"
expect 2 "SEALIFT_TRAIN_LEARNIGN_RATE is set, and is no setting; did you mean SEALIFT_TRAIN_LEARNING_RATE?" \
  env SEALIFT_TRAIN_LEARNIGN_RATE=1 "$train" run --ranks 2
[ "$(grep -c LEARNIGN err.txt)" = 1 ] || fail "the variable was told more than once"
echo 'stepz = 1' >bad.toml
expect 2 "unknown key 'stepz'" "$train" run --config bad.toml
expect 1 "use one of none, ddp, fsdp, hsdp" "$train" run --parallel-method zero3
expect 1 "parallel_method none in a world of 2" "$train" run --ranks 2
expect 2 "device is 'gpu'; use auto, cpu or cuda" "$train" run --parallel-method ddp --ranks 2 --device gpu
expect 1 "need a multiple of 3" "$train" run --parallel-method ddp --ranks 3 --global-batch 32
expect 1 "WORLD_SIZE is 'x'" env RANK=0 WORLD_SIZE=x "$train" run
expect 2 "device is 'gpu'; use auto, cpu or cuda" "$train" run --device gpu
expect 2 "" "$train" frobnicate

echo "a GPU is taken where a driver shows one that LibTorch can use; what is missing is said"
# with_driver DEVICES OPTIONS [CUDA]: with a driver for that CUDA, as a number
with_driver() {
  LD_LIBRARY_PATH=$fake_driver FAKE_DEVICES=$1 FAKE_CUDA=${3:-13020} "$train" run --steps 2 --out device $2
}
expect 0 "device cpu: the NVIDIA driver shows no device" with_driver 0 "--device auto"
expect 1 "device is cuda, but the NVIDIA driver shows no device" with_driver 0 "--device cuda"
expect 0 "device cpu: Fake 0 is here, but " with_driver 2 "--device auto"
expect 1 "device is cuda, but " with_driver 2 "--device cuda"
expect 0 "device cpu: Fake 0 is here, but " with_driver 2 "--device auto" 9010
grep -q '"attention": \[' device/result.json || fail "result.json does not say which attention ran"
expect 1 "device is cuda, but " with_driver 2 "--device cuda" 9010
if [ -e "$(dirname "$train")/../lib/libsealift_train_cuda.so" ]; then
  grep -q 'runs CUDA 9.1 and LibTorch is for .*: install driver .* or newer' err.txt || fail "the driver is not named"
fi
expect 1 "this host has 3 ranks but 2 CUDA devices, and LOCAL_RANK is 2" with_driver 2 "--device auto --parallel-method ddp --ranks 3 --global-batch 33"
expect 0 "device cpu: as device = cpu says" with_driver 2 "--device cpu"
grep -q '"type": "cpu"' device/result.json || fail "result.json does not say the device"

echo "an error in a rank names the rank and the step"
expect 1 "in step" "$train" run --parallel-method ddp --ranks 2 --out diverged --learning-rate 1e30 --clip 0
grep -q 'rank [01]: ' err.txt || fail "no rank in the message"

# ranks_of LAUNCHER COUNT: its processes, in $ranks. The kernel may leave a child out of this list while others come and go.
ranks_of() {
  ranks=
  until [ "$(echo "$ranks" | wc -w)" -ge "$2" ]; do ranks=$(cat "/proc/$1/task/$1/children"); done
}

# fail_one SIGNAL SECONDS CODE: three ranks train, one gets SIGNAL; all must be gone within SECONDS, each having said
# where, and the launcher ends with CODE, that of the rank that ended first.
# SECONDS leaves room for a machine that is busy with other things: it tells a moment or a time-out from a hang.
fail_one() {
  : >err.txt  # what the run before said is no sign of this one
  "$train" run --parallel-method fsdp --ranks 3 --global-batch 33 --steps 1000000 --timeout-seconds 4 --out endless \
    >out.txt 2>err.txt &
  launcher=$!
  until grep -q 'step 1/' err.txt; do
    kill -0 $launcher 2>/dev/null || { cat err.txt >&2; fail "the run ended by itself"; }
    sleep 0.1
  done
  ranks_of $launcher 3
  start=$(date +%s%N)
  kill -"$1" "$(echo $ranks | cut -d" " -f2)"
  got=0
  wait $launcher || got=$?
  took=$((($(date +%s%N) - start) / 1000000))
  [ $got = "$3" ] || { cat err.txt >&2; fail "the launcher exited with $got after a rank got $1, expected $3"; }
  [ $took -le $(($2 * 1000)) ] || { cat err.txt >&2; fail "the others ended $took ms after a rank got $1"; }
  grep -q 'rank [02] stops at' err.txt && grep -q 'in step [0-9]* of 1000000' err.txt || { cat err.txt >&2; fail "no step"; }
  ! grep 'rank [0-9]*: rank [0-9]* stops' err.txt >&2 || fail "the rank is said twice"
  for rank in $ranks; do
    ! kill -0 "$rank" 2>/dev/null || fail "rank process $rank was left behind"
  done
}
echo "a rank that dies ends the others in a moment, each saying where and why"
fail_one KILL 10 137
grep -q 'rank 1 was ended by signal Killed; ending the other ranks' err.txt || { cat err.txt >&2; fail "no message"; }
echo "a rank that hangs ends the others once the time-out is over"
fail_one STOP 15 1

echo "ranks do not outlive their launcher, not even a stopped one"
: >err.txt
"$train" run --parallel-method ddp --ranks 2 --steps 1000000 --out endless >out.txt 2>err.txt &
launcher=$!
until grep -q 'step 1/' err.txt; do
  kill -0 $launcher 2>/dev/null || { cat err.txt >&2; fail "the run ended by itself"; }
  sleep 0.1
done
ranks_of $launcher 2
kill -STOP $ranks
kill -9 $launcher
wait $launcher 2>/dev/null || true
for rank in $ranks; do
  tries=0
  while kill -0 "$rank" 2>/dev/null && ! grep -q '^State:.*Z' "/proc/$rank/status" 2>/dev/null; do
    tries=$((tries + 1))
    [ $tries -lt 50 ] || fail "rank process $rank outlived its launcher"
    sleep 0.1
  done
done

echo "torchrun on one host"  # told its address: by itself it takes the host's name, which need not lead anywhere
expect 0 "served by the launcher (torchrun: " "$torchrun" --standalone --local-addr 127.0.0.1 --no-python --nproc_per_node 2 \
  "$train" run --parallel-method fsdp --out torchrun
expect 0 "" "$train" check --tolerance 1e-5 --floor-factor 1.35 none/result.json torchrun/result.json

echo "a run that is killed goes on from its last checkpoint and ends as one that never stopped"
job="--parallel-method fsdp --ranks 2 --steps 60 --layers 4 --width 128 --checkpoint-every 5"
# shellcheck disable=SC2086  # a list of words
expect 0 "" "$train" run $job --out never --checkpoint-folder never/saved
"$train" run $job --out stopped --checkpoint-folder stopped/saved >out.txt 2>err.txt &
launcher=$!
until ls stopped/saved/step-*/index.json >/dev/null 2>&1; do
  kill -0 $launcher || { cat err.txt >&2; fail "the run ended by itself"; }
  sleep 0.05
done
kill -9 $launcher $(cat /proc/$launcher/task/$launcher/children)
wait $launcher 2>/dev/null || true
last=$(ls stopped/saved/step-*/index.json | tail -1)
# Where killing came too late there is still the one before to go on from.
case $last in *step-000060*) rm -r "$(dirname "$last")" ;; esac
expect 0 "resuming after step" "$train" run $job --out stopped --checkpoint-folder stopped/saved
expect 0 "" "$train" check --tolerance 0 --floor-factor 9 never/result.json stopped/result.json
grep -q '"resumed_after": 0,' never/result.json || fail "a run that began anew says otherwise"
after=$(sed -n 's/^ *"resumed_after": \([0-9]*\),$/\1/p' stopped/result.json)
[ $((after)) -ge 5 ] && [ $((after)) -lt 60 ] && [ $((after % 5)) = 0 ] || fail "a run that went on says after step '$after'"
[ "$(ls stopped/saved | wc -l)" = 2 ] || fail "not two checkpoints are kept"
for part in 0 1; do
  cmp never/saved/step-000060/rank-0000$part.safetensors stopped/saved/step-000060/rank-0000$part.safetensors ||
    fail "the last checkpoints differ"
done
expect 0 "resuming after step 60" "$train" run --parallel-method ddp --ranks 2 --steps 62 --layers 4 --width 128 --out other --checkpoint-folder stopped/saved
expect 1 "resume is none" "$train" run --resume none --checkpoint-folder stopped/saved
expect 1 "is of another job" "$train" run --seed 9 --checkpoint-folder stopped/saved
expect 2 "resume is 'maybe'" "$train" run --resume maybe
expect 0 "wrote one.safetensors from" "$train" export stopped/saved one.safetensors
expect 0 "wrote set from" "$train" export stopped/saved/step-000062 set --max-file-gb 0.0001 --bf16
[ -e set/model.safetensors.index.json ] || fail "no index of the set"
expect 1 "no whole checkpoint" "$train" export . one.safetensors

echo "a save that cannot be written is said, and ends nothing"
: > in_the_way
expect 0 "the checkpoint of step 2 is not saved: " "$train" run --steps 6 --checkpoint-every 2 --out logged \
  --checkpoint-folder in_the_way/saved
[ "$(wc -l < logged/log.jsonl)" = 6 ] || fail "the log has not the six steps that were done"

if unshare -n true 2>/dev/null; then
  echo "a host with nothing but loopback, and no names"
  expect 0 "" unshare -n sh -c "ip link set lo up && '$train' run --parallel-method fsdp --ranks 2 --steps 2 --out alone"
fi
