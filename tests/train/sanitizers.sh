#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs the engine's tests under AddressSanitizer with UBSan, then under ThreadSanitizer. By hand, not in CI: most of its
# time goes into building. What is let pass is LibTorch's own, listed beside this file. clang 19 compiles.
#   tests/train/sanitizers.sh [asan-train|tsan-train] ...
set -euo pipefail
cd "$(dirname "$0")/../.."
cmake/prerequisites.sh sanitizers

kPrograms="train_test monitor_test pieces_test collectives_test launch_test checkpoint_test models_test tuning_test
  trainer_loop_test property_test"
here=$PWD/tests/train
export ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1:allocator_may_return_null=1
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1:suppressions=$here/ubsan.supp
export SEALIFT_PROPERTY_SECONDS=30
export OMP_NUM_THREADS=1  # nothing shows ThreadSanitizer how libgomp's threads wait for each other
export TSAN_OPTIONS=history_size=4:allocator_may_return_null=1:suppressions=$here/tsan.supp

for preset in "${@:-asan-train tsan-train}"; do
  for name in $preset; do
    cmake --preset "$name"
    # shellcheck disable=SC2086  # a list of words
    cmake --build "build/$name" --target $kPrograms
    for program in $kPrograms; do
      printf '==> %s: %s\n' "$name" "$program"
      "build/$name/bin/$program"
    done
  done
done
