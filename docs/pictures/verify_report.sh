#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Draws the pictures of a verification report: its first sheet in both languages for the pages, each sheet to look at.
# By hand, after a run whose report the pages are to show: samples/air_gap.sh writes one into OUT/verdict.
# Sheets of A4 as a printer gets them, and not the browser's window, so that what is cut or overflows is seen.
# usage: docs/pictures/verify_report.sh REPORT_FOLDER [SHEETS]
#        writes docs/pictures/site_report.png and site_report_zh.png; with SHEETS that folder gets every sheet, and
#        docs/pictures stays as it is. Needs Debian's chromium, poppler-utils and a Chinese font (fonts-noto-cjk).
set -eu
report=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
sheets=${2:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for language in '' _zh; do
  page=$report/report$(echo "$language" | tr _ .).html
  chromium --headless --no-sandbox --disable-gpu --user-data-dir="$work/profile" --no-pdf-header-footer \
    --print-to-pdf="$work/report$language.pdf" "file://$page" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
  if [ -n "$sheets" ]; then
    mkdir -p "$sheets"
    pdftoppm -r 80 -png "$work/report$language.pdf" "$sheets/sheet$language"
    pdftoppm -r 80 -gray -f 1 -l 1 -png "$work/report$language.pdf" "$sheets/grey$language"
  else
    pdftoppm -r 96 -png -f 1 -l 1 -singlefile "$work/report$language.pdf" "$here/site_report$language"
  fi
done
