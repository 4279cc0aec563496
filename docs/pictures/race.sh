#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Draws the page of `sealift-train compare` for docs/which_method.md in both languages: docs/pictures/race.png and
# race_zh.png. By hand, after a race whose page the docs are to show.
# As wide as a window beside a terminal, and as high as a page of three runs.
# usage: docs/pictures/race.sh SEALIFT_TRAIN RESULT…    three results, as compare takes them
#        Needs Debian's chromium and a Chinese font (fonts-noto-cjk).
set -eu
train=$1
shift
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for language in en zh; do
  end=$([ $language = en ] || echo _zh)
  "$train" compare "$@" --lang $language --page "$work/page.html"
  chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$work/profile" \
    --window-size=820,1120 --screenshot="$here/race$end.png" "file://$work/page.html" >"$work/log" 2>&1 ||
    { cat "$work/log" >&2; exit 1; }
done
