#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Run by ctest after all test programs: lists what they left out on this machine. Exit status 77, which ctest counts as
# skipped, where that is anything.
#   tests/left_out.sh FOLDER     with a file for each program, written by tests/support/left_out.hpp
set -euo pipefail
shopt -s nullglob
status=0
for file in "$1"/*; do
  sed "s|^|$(basename "$file"): |" "$file"
  status=77
done
exit $status
