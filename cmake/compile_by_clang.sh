#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A compiler launcher that compiles by another compiler: compile_by_clang.sh 'LAUNCHER... CLANG' GCC ARGUMENTS...
# clang takes gcc's arguments, and finds a precompiled header under the name that gcc gives it.
# From 18 on it names templates otherwise than the gcc that compiled LibTorch, unless told not to.
set -eu
clang=$1
shift 2
case " $* " in  # clang would take the header's last state for what is to be precompiled
  *" -x c++-header "*) for argument in "$@"; do case $argument in *.gch) rm -f "$argument" ;; esac; done ;;
esac
# shellcheck disable=SC2086  # a list of words
exec $clang "$@" -fpch-instantiate-templates -fclang-abi-compat=17 \
  -Wno-unknown-warning-option -Wno-deprecated-declarations
