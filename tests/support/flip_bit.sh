# SPDX-License-Identifier: Apache-2.0
# Damages a file by one bit. Sourced; a byte that is written instead may equal the old one.
# flip_bit FILE OFFSET
flip_bit() {
  _byte=$(od -An -tu1 -j "$2" -N 1 "$1" | tr -d ' ')
  printf "\\$(printf %o $((_byte ^ 4)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}
