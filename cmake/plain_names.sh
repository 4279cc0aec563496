#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes a library to link against that has LIBRARY's name and functions, and no versions of symbols: Debian's libcurl has
# such versions and Fedora's has none, so a program that asks for them is one distribution's alone. Nobody loads it.
#   plain_names.sh LIBRARY COMPILER OUT
set -eu
library=$1 compiler=$2 out=$3
soname=$(objdump -p "$library" | awk '$1 == "SONAME" { print $2 }')
nm -D --defined-only "$library" | awk '$2 == "T" { sub(/@.*/, "", $3); print ".globl " $3 "\n.type " $3 ",@function\n" $3 ":" }' \
  > "$out.s"
"$compiler" -shared -nostdlib -Wl,-soname,"$soname" -o "$out" "$out.s"
