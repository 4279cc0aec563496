#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The real bundle, damaged and swapped with nothing but dd, cp and mv: each is refused with the right code and the right
# file in the message, and nothing is written. Volumes are shared with the good bundle by links, so a round is cheap.
#   refusals_test.sh OUT BIN
set -euo pipefail
source "$(dirname "$0")/../support/left_out.sh"
out=$1
bin=$2
good=$(echo "$out"/bundle/*)
stem=$(basename "$good")
fingerprint=$(cat "$out/keys/root.fingerprint")
work=$out/refusals
rm -rf "$work"
mkdir -p "$work"
trap 'rm -rf "$work"' EXIT
round=0

fresh() {  # a new folder with links to the good bundle's files
  bad=$work/$((round += 1))/$stem
  mkdir -p "$bad"
  cp -l "$good"/* "$bad/"
}
own() { cp --remove-destination "$(readlink -f "$bad/$1")" "$bad/$1.own" && mv "$bad/$1.own" "$bad/$1"; }  # no longer a link
flip() {  # flip FILE OFFSET: changes one bit of an own copy
  own "$1"
  local byte
  byte=$(od -An -tu1 -j "$2" -N 1 "$bad/$1" | tr -d ' ')
  printf "\\$(printf %o $((byte ^ 4)))" | dd of="$bad/$1" bs=1 seek="$2" conv=notrunc status=none
}
refused() {  # refused CODE TEXT [VERB ARGUMENTS...]: the exit code, and a text that the message must hold
  local code=$1 text=$2 status=0
  shift 2
  "$bin/sealift-install" "${@:-verify}" "$bad" --fingerprint "$fingerprint" > "$work/stdout" 2> "$work/stderr" || status=$?
  if [ "$status" != "$code" ] || ! grep -qF -- "$text" "$work/stderr"; then
    echo "expected exit $code and '$text', got exit $status:"; cat "$work/stderr"; exit 1
  fi
  printf 'refused: %-28s %s\n' "$text" "$(head -1 "$work/stderr" | cut -c1-90)"
}
size() { stat -c %s "$good/$1"; }

fresh; "$bin/sealift-install" verify "$bad" --fingerprint "$fingerprint" > /dev/null 2>&1

for offset in 0 100 $(($(size "$stem.seal") / 2)) $(($(size "$stem.seal") - 2)); do
  fresh; flip "$stem.seal" "$offset"
  status=0; "$bin/sealift-install" verify "$bad" --fingerprint "$fingerprint" > /dev/null 2> "$work/stderr" || status=$?
  case $status in 4|6|11) ;; *) echo "a changed seal ended with $status"; cat "$work/stderr"; exit 1 ;; esac
  grep -qF "$stem.seal" "$work/stderr"
done
for offset in 0 777 $(($(size "$stem.chunks") - 1)); do fresh; flip "$stem.chunks" "$offset"; refused 5 "$stem.chunks"; done
for place in "$stem.vol003 $(($(size "$stem.vol003") - 1))" "$stem.vol002 500000000"; do
  read -r volume offset <<< "$place"
  fresh; flip "$volume" "$offset"; refused 5 "$volume at offset "
  chunk=$(sed -n "s/.*$volume at offset //p" "$work/stderr" | head -1)  # its chunk, of 4 MiB at most
  [ "$chunk" -le "$offset" ] && [ "$offset" -lt $((chunk + 4194304)) ]
done
fresh; rm "$bad/$stem.vol002"; refused 7 "$stem.vol002"
fresh; own "$stem.vol003"; truncate -s -1 "$bad/$stem.vol003"; refused 5 "$stem.vol003"
fresh; own "$stem.vol003"; truncate -s +1 "$bad/$stem.vol003"; refused 5 "$stem.vol003"
fresh; cp -l "$good/$stem.vol001" "$bad/$stem.vol004"; refused 10 "$stem.vol004"
fresh; mv "$bad/$stem.vol001" "$bad/x"; mv "$bad/$stem.vol002" "$bad/$stem.vol001"; mv "$bad/x" "$bad/$stem.vol002"; refused 5 "$stem.vol001"
fresh; rm "$bad/$stem.seal"; refused 7 "no seal"
fresh; own sealift-install; printf x >> "$bad/sealift-install"; refused 5 "sealift-install"

# apply refuses the same, and a refusal before the first write leaves no prefix behind.
fresh; flip "$stem.chunks" 5; refused 5 "$stem.chunks" apply --prefix "$work/prefix"; [ ! -e "$work/prefix" ]
fresh; rm "$bad/$stem.vol001"; refused 7 "$stem.vol001" apply --prefix "$work/prefix"; [ ! -e "$work/prefix" ]
"$bin/sealift-pack" keygen "$work/other" > /dev/null
fresh; fingerprint=$(cat "$work/other/root.fingerprint"); refused 6 "not among the bundle's roots" apply --prefix "$work/prefix"
[ ! -e "$work/prefix" ]
fingerprint=$(cat "$out/keys/root.fingerprint")
if [ "$(id -u)" -eq 0 ]; then  # too little room is known before a byte is written
  mkdir "$work/small"
  if unshare --mount true 2>/dev/null; then
    fresh
    export -f refused; export bin bad fingerprint work
    unshare --mount bash -euc 'mount -t tmpfs -o size=512m tmpfs "$work/small"
      refused 9 "$work/small" apply --prefix "$work/small/prefix"; [ -z "$(ls "$work/small")" ]'
  else
    left_out "too little room, which needs a mount namespace"
  fi
fi
echo "every refusal came with its code and its file"
