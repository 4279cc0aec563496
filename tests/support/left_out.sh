# SPDX-License-Identifier: Apache-2.0
# left_out WHY: what left_out.hpp is to C++, for shell scripts that ctest starts; source it first.
[ -z "${SEALIFT_LEFT_OUT:-}" ] || { mkdir -p "$(dirname "$SEALIFT_LEFT_OUT")"; rm -f "$SEALIFT_LEFT_OUT"; }
left_out() {
  echo "left out: $*"
  [ -z "${SEALIFT_LEFT_OUT:-}" ] || echo "$*" >> "$SEALIFT_LEFT_OUT"
}
