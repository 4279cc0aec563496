#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# installer/audit/audit.sh and the real sealift-install must end with one and the same code on good bundles and on each
# fault. A difference that is meant stands in the table below; one that is new, or that is gone, fails the test.
#   audit_test.sh AUDIT_SH MAKE_FAULTY_BUNDLES SEALIFT_INSTALL
set -uo pipefail
audit=$(realpath "$1")
make_bundles=$(realpath "$2")
install=$(realpath "$3")
. "$(dirname "$(realpath "$0")")/../support/flip_bit.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
shell=$(command -v dash || command -v sh)

# NAME INSTALLER AUDIT: why. audit.sh is never the milder one.
differences='
manifest-path-greek 0 11: which names are equal without upper and lower case is a matter for Unicode tables
manifest-path-composed-otherwise 4 11: so is which spelling of a letter is the normal one
'
mkdir "$work/bundles" "$work/tmp"
"$make_bundles" "$work/bundles" > "$work/list" || exit 1

judge() {  # NAME FINGERPRINT -> "NAME INSTALLER AUDIT"
  timeout 200 "$install" verify "$work/bundles/$1" --fingerprint "$2" > "$work/$1.install" 2>&1
  local installer=$?
  TMPDIR=$work/tmp timeout 200 "$shell" "$audit" "$2" "$work/bundles/$1" > "$work/$1.audit" 2>&1
  echo "$1 $installer $?"
}
export -f judge
export work install audit shell
xargs -P 2 -L 1 bash -c 'judge "$@"' _ < "$work/list" > "$work/verdicts"

failed=0
complain() { echo "FAILED: $*"; failed=1; }
[ "$(wc -l < "$work/verdicts")" -gt 250 ] || complain "only $(wc -l < "$work/verdicts") bundles were judged"
while read -r name installer audited; do
  row=$(grep "^$name " <<< "$differences")
  if [ -z "$row" ] && [ "$installer" != "$audited" ]; then
    complain "$name: sealift-install $installer, audit.sh $audited"; cat "$work/$name.install" "$work/$name.audit"
  elif [ -n "$row" ] && [ "${row%%:*}" != "$name $installer $audited" ]; then
    complain "$name: sealift-install $installer, audit.sh $audited, but the table says: $row"
  fi
  case $name in
    *good-*) [ "$installer" = 0 ] || complain "$name is not good: $installer" ;;
    good) ;;
    *) [ "$audited" != 0 ] || complain "$name is good" ;;
  esac
  case $audited in 0 | 4 | 5 | 6 | 7 | 10 | 11 | 14 | 16) ;; *) complain "$name: audit.sh ended with $audited" ;; esac
  [ "$audited" = 0 ] || grep -Eq '^(bad|cannot check): ' "$work/$name.audit" || complain "$name: audit.sh says nothing"
  ! grep -Ev '^((bad|cannot check|note|good): |  (where|expected|got|next|differs): )' "$work/$name.audit" || complain "$name: stray output"
done < "$work/verdicts"
while read -r name _; do
  [ -z "$name" ] || grep -q "^$name " "$work/verdicts" || complain "the table has $name, which no bundle is called"
done <<< "$differences"
[ -z "$(ls -A "$work/tmp")" ] || complain "audit.sh left temporary files"

# Cannot check: no openssl, or one without SM2, Ed25519 or SM3. Never good, though nothing else is wrong.
mkdir "$work/bin"
for tool in $(sed -n 's/^for tool in openssl \(.*\); do$/\1/p' "$audit"); do ln -s "$(command -v "$tool")" "$work/bin/$tool"; done
fingerprint() { sed -n "s/^$1 //p" "$work/list"; }
lacking() {  # NAME CODE
  PATH=$work/bin TMPDIR=$work/tmp "$shell" "$audit" "$(fingerprint "$1")" "$work/bundles/$1" > "$work/lacking" 2>&1
  local code=$?
  [ $code = "$2" ] || { complain "$1 with less of openssl: $code instead of $2"; cat "$work/lacking"; }
}
lacking good 11
real=$(command -v openssl)
printf '#!/bin/sh\ncase "$*" in *sm3* | *SM2* | *-rawin*) exit 1 ;; esac\nexec "%s" "$@"\n' "$real" > "$work/bin/openssl"
chmod +x "$work/bin/openssl"
lacking good 0
lacking good-sm3 11
lacking good-sm2 11
lacking good-ed25519 11
lacking good-gm 11
lacking good-unneeded-stranger 11
lacking gm-stripped 11
lacking folder-flipped-first 5
lacking good-ed25519 11
grep -q "this machine's openssl lacks a kind" "$work/lacking" && grep -q 'expected: ed25519' "$work/lacking" &&
  grep -q 'in FIPS mode has ECDSA alone' "$work/lacking" && ! grep -q 'ask the sender' "$work/lacking" ||
  { complain 'missing signatures are blamed'; cat "$work/lacking"; }
"$shell" "$audit" 00 "$work/bundles/good" 2> /dev/null; [ $? = 2 ] || complain "a bad fingerprint is no usage error"
"$shell" "$audit" "$(fingerprint good)" "$work/none" 2> /dev/null; [ $? = 7 ] || complain "a missing folder is not missing"
( cd "$work/bundles/good" && "$shell" "$audit" "SHA256:" ) 2> /dev/null; [ $? = 2 ] || complain "no fingerprint is no usage error"
( cd "$work/bundles/good" && "$shell" "$audit" "sha256:$(fingerprint good | tr a-f A-F)" ) > /dev/null 2>&1 || complain "the own folder"

# What a medium or a copy has made of it: both say what was changed and what to name.
changed() {  # WHAT FOLDER WORDS
  "$install" verify "$2" --fingerprint "$(fingerprint good)" > "$work/changed.install" 2>&1
  local installer=$?
  TMPDIR=$work/tmp "$shell" "$audit" "$(fingerprint good)" "$2" > "$work/changed.audit" 2>&1
  local audited=$?
  [ "$installer $audited" = '7 7' ] && grep -Fq -- "$3" "$work/changed.install" && grep -Fq -- "$3" "$work/changed.audit" ||
    { complain "$1: sealift-install $installer, audit.sh $audited, not both: $3"; cat "$work"/changed.*; }
}
renamed() {  # NEW_NAMES (a sed script) -> a copy with these names
  rm -rf "$work/changed" && mkdir "$work/changed"
  for file in "$work/bundles/good"/*; do cp "$file" "$work/changed/$(basename "$file" | sed "$1")"; done
}
renamed 'y/abcdefghijklmnopqrstuvwxyz/ABCDEFGHIJKLMNOPQRSTUVWXYZ/'
changed 'upper case' "$work/changed" 'the names are in upper case here'
renamed 's/$/;1/'
changed ';1' "$work/changed" 'with what discs add'
renamed 's/seal$/sea/'
changed '8.3' "$work/changed" 'cut to eight letters and three'
renamed '/chunks$/y/abcdefghijklmnopqrstuvwxyz/ABCDEFGHIJKLMNOPQRSTUVWXYZ/'
changed 'the chunk list in upper case' "$work/changed" '.CHUNKS, which is this name in another case'
renamed '/vol001$/s/$/;1/'
changed 'a volume with ;1' "$work/changed" '.vol001;1, which is this name in another case'
for short in 'tiny-7.vol' 'tiny-7~1.vol' 'TINY-7~1.VOL'; do
  renamed "s/^tiny-7.vol001$/$short/"
  changed "a volume as $short" "$work/changed" "$short, which may be this name, cut to eight letters and three"
done
renamed 's/^tiny-7.chunks$/tiny-7.chu/'
changed 'a chunk list in 8.3' "$work/changed" 'tiny-7.chu, which may be this name, cut to eight'
for copy in 'tiny-7 (1).vol001' 'tiny-7(2).vol001' 'tiny-7 - Copy.vol001' 'tiny-7 copy 2.vol001'; do
  renamed "s/^tiny-7.vol001$/$copy/"
  changed "a volume as $copy" "$work/changed" "$copy, which is the name of a second copy"
done

# What systems leave on a medium is passed over; second copies are named, all in one message.
renamed ''
for file in "$work/changed"/*; do echo mac > "$work/changed/._${file##*/}"; done
touch "$work/changed/.DS_Store" "$work/changed/Thumbs.db" "$work/changed/desktop.ini"
"$install" verify "$work/changed" --fingerprint "$(fingerprint good)" > /dev/null || complain 'files of systems trouble sealift-install'
"$shell" "$audit" "$(fingerprint good)" "$work/changed" > /dev/null 2>&1 || complain 'files of systems trouble audit.sh'
beside() {  # CODE WORDS...
  local code=$1 installer audited
  "$install" verify "$work/changed" --fingerprint "$(fingerprint good)" > "$work/changed.install" 2>&1; installer=$?
  TMPDIR=$work/tmp "$shell" "$audit" "$(fingerprint good)" "$work/changed" > "$work/changed.audit" 2>&1; audited=$?
  [ "$installer $audited" = "$code $code" ] || complain "copies: sealift-install $installer, audit.sh $audited, not $code"
  for words in "${@:2}"; do
    grep -Fq -- "$words" "$work/changed.install" && grep -Fq -- "$words" "$work/changed.audit" || { complain "copies: $words"; cat "$work"/changed.*; }
  done
}
touch "$work/changed/tiny-7 (1).vol001" "$work/changed/tiny-7 - Copy.chunks" "$work/changed/other-1.vol001"
beside 10 'tiny-7 (1).vol001 (a second copy of tiny-7.vol001)' 'tiny-7 - Copy.chunks (a second copy of tiny-7.chunks)' \
  'other-1.vol001, ' 'move them away'
cp "$work/changed/tiny-7.seal" "$work/changed/tiny-7 (1).seal"
beside 10 'more than one seal' 'tiny-7 (1).seal' 'second copy'
mkdir -p "$work/outer"; cp -r "$work/bundles/good" "$work/outer/inner"
changed 'an outer folder' "$work/outer" "name that folder: $work/outer/inner"
rm -rf "$work/outer"; mkdir "$work/outer"; echo > "$work/outer/good-1.zip"
changed 'a zip in a folder' "$work/outer" 'an archive: good-1.zip'
changed 'a zip' "$work/outer/good-1.zip" 'unpack'
changed 'a chunk list' "$(echo "$work/bundles/good"/*.chunks)" 'name '

# Line breaks of Windows: the script says it itself, the installer of one beside a bundle.
sed 's/$/\r/' "$audit" > "$work/crlf.sh"
for one in "$shell" bash; do
  "$one" "$work/crlf.sh" "$(fingerprint good)" "$work/bundles/good" > "$work/crlf" 2>&1
  [ $? = 11 ] && [ "$(wc -l < "$work/crlf")" = 2 ] && grep -q 'line breaks of Windows (CR LF)' "$work/crlf" ||
    { complain "$one: CR LF is not told"; cat "$work/crlf"; }
done
(cp "$work/crlf.sh" "$work/audit.sh" && cd "$work" && eval "$(sed -n 's/.*take them back: //p' crlf)") && cmp "$audit" "$work/audit.sh" ||
  complain 'the remedy for CR LF does not work'

# One volume alone: its folder holds seal and chunk list, and what is wrong with it is one thing each.
volumes=("$work/bundles/good"/*.vol*)
[ "${#volumes[@]}" -ge 2 ] || complain "the good bundle has no second volume"
second=${volumes[1]##*/}
mkdir "$work/desk" "$work/disc"
cp "$work/bundles/good"/*.seal "$work/bundles/good"/*.chunks "$work/desk"
alone() {  # WHAT CODE FOLDER FILE [FINGERPRINT]
  local fingerprint=${5-$(fingerprint good)} installer audited
  "$install" verify "$3" --volume "$4" --fingerprint "$fingerprint" > "$work/alone.install" 2>&1
  installer=$?
  TMPDIR=$work/tmp "$shell" "$audit" "$fingerprint" "$3" "$4" > "$work/alone.audit" 2>&1
  audited=$?
  [ "$installer $audited" = "$2 $2" ] ||
    { complain "$1: sealift-install $installer, audit.sh $audited, not $2"; cat "$work"/alone.*; }
}
fresh_disc() { rm -rf "$work/disc"; mkdir "$work/disc"; cp "${volumes[1]}" "$work/disc"; }
both_say() { grep -Fq -- "$1" "$work/alone.install" && grep -Fq -- "$1" "$work/alone.audit" || { complain "not said: $1"; cat "$work"/alone.*; }; }
fresh_disc
alone 'a good volume' 0 "$work/desk" "$work/disc/$second"
alone 'a good volume beside its seal' 0 "$work/bundles/good" "${volumes[0]}"
alone 'a good volume without its seal' 7 "$work/disc" "$work/disc/$second"
alone 'a good volume, another root' 6 "$work/desk" "$work/disc/$second" "$(fingerprint good | tr 0-9a-f 1-9a-f0)"
"$install" verify --volume "${volumes[0]}" --fingerprint "$(fingerprint good)" --json | grep -q '"bad":\[\]' || complain 'no folder named'
flip_bit "$work/disc/$second" 9
alone 'a flipped byte' 5 "$work/desk" "$work/disc/$second"
both_say 'files/"a"'
fresh_disc; truncate -s -1 "$work/disc/$second"
alone 'a cut volume' 5 "$work/desk" "$work/disc/$second"
fresh_disc; truncate -s +1 "$work/disc/$second"
alone 'a long volume' 5 "$work/desk" "$work/disc/$second"
fresh_disc; cp "${volumes[0]}" "$work/disc/$second"
alone 'another volume of this name' 5 "$work/desk" "$work/disc/$second"
mv "$work/disc/$second" "$work/disc/other-1.vol001"
alone 'a volume of another bundle' 10 "$work/desk" "$work/disc/other-1.vol001"
ln -s "${volumes[1]}" "$work/disc/$second"
alone 'a link to a volume' 4 "$work/desk" "$work/disc/$second"
fresh_disc
sed -i '$s/"sig":"[^"]*"/"sig":""/' "$work/desk"/*.seal
alone 'a manifest that nobody signed' 6 "$work/desk" "$work/disc/$second"
# A recovery file alone, likewise.
helpers=("$work/bundles/recovery-good-whole"/*.rec0*)
[ "${#helpers[@]}" -ge 2 ] || complain "the good bundle has no second recovery file"
with=$(fingerprint recovery-good-whole) helper=${helpers[1]##*/}
rm -rf "$work/desk" "$work/disc"; mkdir "$work/desk" "$work/disc"
cp "$work/bundles/recovery-good-whole"/*.{seal,chunks,recovery} "$work/desk"
cp "${helpers[1]}" "$work/disc"
alone 'a good recovery file' 0 "$work/desk" "$work/disc/$helper" "$with"
alone 'a good volume of a bundle with recovery data' 0 "$work/bundles/recovery-good-whole" \
  "$work/bundles/recovery-good-whole/$second" "$with"
flip_bit "$work/disc/$helper" 9
alone 'a flipped byte of a recovery file' 5 "$work/desk" "$work/disc/$helper" "$with"
truncate -s -1 "$work/disc/$helper"
alone 'a cut recovery file' 5 "$work/desk" "$work/disc/$helper" "$with"
rm "$work/desk"/*.recovery
alone 'a recovery file without its list' 7 "$work/desk" "$work/disc/$helper" "$with"
[ -z "$(ls -A "$work/tmp")" ] || complain "audit.sh left temporary files of a volume"
[ $failed = 0 ] && echo "$(wc -l < "$work/verdicts") bundles judged alike by audit.sh and sealift-install"
exit $failed
