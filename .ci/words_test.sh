#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The check of words must count each pattern, in comments, messages and pages, and refuse one more and one less than was written down.
set -euo pipefail
check=$(realpath "$(dirname "$0")/words.py")
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree"/.ci "$tree"/docs "$tree"/bundle "$tree"/tests
counts() { python3 "$check" "$tree" --list | wc -l; }
is() { [ "$(counts)" = "$1" ] || { python3 "$check" "$tree" --list; echo "expected $1: $2"; exit 1; }; }
says() {  # says MESSAGE
  if output=$(python3 "$check" "$tree"); then echo "not refused: $1"; exit 1; fi
  grep -qF -- "$1" <<< "$output" || { echo "wrong message: $output"; exit 1; }
}

# Not counted: code, strings of tests, `names`, blocks of commands, Chinese pages, and plain English.
cat > "$tree/bundle/good.cpp" <<'END'
// Null where there is none; no file of those is older than `those that are none`.
const char* text = "other bytes than UTF-8";  // The newest one.
END
echo 'const char* text = "bytes that are no UTF-8, of those that did so";' > "$tree/tests/good.cpp"
printf '# Page\n\nThose files are right.\n\n```sh\necho those that did so\n```\n' > "$tree/docs/page.md"
echo 'those that did so' > "$tree/docs/page_zh.md"
is 0 "nothing"
python3 "$check" "$tree" --write
python3 "$check" "$tree"

# Each pattern, alone, also across lines and behind code.
while IFS='|' read -r pattern words; do
  echo "// $words" > "$tree/bundle/bad.hpp"
  says "\"$pattern\" stands 1 times, at most 0 are allowed"
done <<'END'
that is no|bytes that are no UTF-8
is none|a torn file is not whole, and so is none
those that|of those that came late
the one that|the one that was used longest ago
do so|ranks that did so
whoever|whoever mends it
END
printf '/// A file that\n/// is none.\n' > "$tree/bundle/bad.hpp"
is 1 "across lines"
printf 'int a;  // whoever reads it\nint b;  // one that\n// is none\n' > "$tree/bundle/bad.hpp"
is 2 "behind code, and a comment of its own below"
printf 'const char* a = "the one "\n  "that was used";  // "whoever"\nint b;  // plain\n' > "$tree/bundle/bad.hpp"
is 2 "in a message, also across its parts, and behind code"
printf '#!/bin/sh\n# those who read\nx=1  \043 whoever\n' > "$tree/bundle/bad.sh"
is 4 "in scripts"
printf '| a | those that fit |\n' >> "$tree/docs/page.md"
is 5 "in tables of pages"

# What was written down is the most, and the least.
python3 "$check" "$tree" --write
python3 "$check" "$tree"
rm "$tree/bundle/bad.sh"
says '"whoever" stands 1 times and 2 are allowed'
python3 "$check" "$tree" --write
echo '// whoever' >> "$tree/bundle/good.cpp"
says '"whoever" stands 2 times, at most 1 are allowed'
echo "words_test: each pattern is counted, and one more is refused"
