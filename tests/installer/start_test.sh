#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# sealift-start becomes the program of its own name in ../libexec, through links and PATH. (Where /proc is missing:
# tests/end_to_end.)
#   start_test.sh SEALIFT_START
set -euo pipefail
start=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/a b/bin" "$work/a b/libexec" "$work/links"
cp "$start" "$work/a b/bin/tool"
cat > "$work/a b/libexec/tool" <<'TOOL'
#!/bin/sh
echo "ran with $# arguments: $1|$2, origin ${LD_ORIGIN_PATH:-unset}"
exit 7
TOOL
chmod +x "$work/a b/libexec/tool"
ln -s "../a b/bin/tool" "$work/links/tool2"
expect() { [ "$1" = "$2" ] || { printf 'expected: %s\ngot:      %s\n' "$1" "$2"; exit 1; }; }

expect "ran with 2 arguments: x y|z, origin unset" "$("$work/a b/bin/tool" 'x y' z ; true)"
expect "ran with 2 arguments: x y|z, origin unset" "$("$work/links/tool2" 'x y' z ; true)"
expect "ran with 2 arguments: x y|z, origin unset" "$(cd "$work/links" && ./tool2 'x y' z ; true)"
expect "ran with 2 arguments: x y|z, origin unset" "$(PATH="$work/a b/bin:$PATH" && tool 'x y' z ; true)"
expect 7 "$("$work/a b/bin/tool" > /dev/null; echo $?)"
mv "$work/a b/libexec" "$work/gone"
expect 127 "$("$work/a b/bin/tool" 2> "$work/said"; echo $?)"
grep -q "not where it belongs" "$work/said"
mv "$work/gone" "$work/a b/libexec"

echo "sealift-start finds the real program everywhere"
