#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# audit.sh: what `sealift-install verify` checks, with tools that your machine has already: a POSIX shell, openssl,
# sha256sum, base64, grep, sed, awk, od, dd, sort. For an auditor who trusts no program that came with the bundle.
# The steps are those of FORMAT.md, "Reading, in this order". Nothing from a bundle is ever run or evaluated.
# One file, and so above 600 lines: it is what an auditor reads, whitelists and carries.
#
#   sh audit.sh FINGERPRINT [FOLDER [VOLUME]]    FINGERPRINT of a root, as its owner told you by another way; VOLUME:
#                                                only this file of the bundle, the others need not be there
#
# Three outcomes: 0 good; 11 cannot check (a tool or an algorithm is missing here); any other code: bad. The codes
# are those of sealift-install: 2 usage, 3 unreadable, 4 format, 5 digest, 6 signature, 7 missing, 10 conflict,
# 14 rollback, 16 revoked or expired.
#
# Each of these lines ends with a comment, which takes the CR that a copy in text mode puts there.
breaks=$(dd if="$0" bs=10 count=1 2> /dev/null | tr -d '\r' | wc -c) #
[ $((breaks)) -ne 9 ] || echo 'cannot check: this script has line breaks of Windows (CR LF)' >&2 #
[ $((breaks)) -ne 9 ] || printf '%s\n' "  next:     copy it again as binary, or take them back: sed -i 's/\r\$//' audit.sh" >&2 #
[ $((breaks)) -ne 9 ] || exit 11 #
set -u
LC_ALL=C IFS=' 	
'
export LC_ALL
umask 077
tab='	'

say() { [ -z "$2" ] || { printf '%s%s' "$1" "$2" | tr -c ' -~' '?'; echo; } >&2; }
fail() {  # CODE WHAT WHERE EXPECTED GOT NEXT; empty ones are left out
  case $1 in 11) say 'cannot check: ' "$2" ;; *) say 'bad: ' "$2" ;; esac
  say '  where:    ' "${3-}"
  say '  expected: ' "${4-}"
  say '  got:      ' "${5-}"
  say '  next:     ' "${6-}"
  exit "$1"
}
note() { say 'note: ' "$*"; }
again='copy it again from its source; if it stays, do not use it'
sender='ask the sender for an intact one'
elsewhere='use a machine with an OpenSSL 3 that has it; one in FIPS mode has ECDSA alone'
names='mount the disc with its own names (Rock Ridge or Joliet), or give the files their names back'

# --- 1. Arguments and tools.
case $# in 1 | 2 | 3) ;; *) fail 2 'usage: sh audit.sh FINGERPRINT [FOLDER [VOLUME]]' ;; esac
pinned=$(printf '%s' "${1#sha256:}" | tr -d ': \n' | tr A-F a-f)
printf '%s\n' "$pinned" | grep -Eqx '[0-9a-f]{64}' ||
  fail 2 "this is not a root's fingerprint" '' 'sha256: and 64 hexadecimal digits' "$1"
folder=${2-.}
case $folder in /* | ./* | . | ..) ;; *) folder=./$folder ;; esac
only=${3-}
[ $# -lt 3 ] || [ -n "$only" ] || fail 2 'the name of the volume is empty'
case $only in '' | /* | ./*) ;; *) only=./$only ;; esac
for tool in openssl sha256sum base64 sed grep awk od dd wc cmp sort tr cat date expr mktemp mv rm; do
  command -v "$tool" > /dev/null || fail 11 'a tool that this script needs is not here' '' "$tool"
done
t=$(mktemp -d) || fail 3 'there is no place for temporary files' "${TMPDIR-/tmp}"
trap 'rm -rf "$t"' EXIT
trap 'exit 3' HUP INT TERM

# --- 2. The grammar: each document has one spelling (keys sorted, no spaces), so one regular expression says it all.
any_of() { printf '(%s(,%s)*)?' "$1" "$1"; }  # the elements of a list
b='[A-Za-z0-9+/]'
base64="(${b}{4})*(${b}[AQgw]==|${b}{2}[AEIMQUYcgkosw048]=)?"
hex='[0-9a-f]{64}'
name='[A-Za-z0-9][A-Za-z0-9._-]{0,99}'
number='(0|[1-9][0-9]{0,15})'
bool='(true|false)'
word='[^"\\]{0,20}'
time='[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z'
glibc='[0-9]{1,10}(\.[0-9]{1,10}){1,2}'
dotted='[0-9]{1,9}(\.[0-9]{1,9}){0,3}'
c=$(printf '[\200-\277]')
utf8=$(printf '[\302-\337]%s|\340[\240-\277]%s|[\341-\354\356\357]%s%s|\355[\200-\237]%s' "$c" "$c" "$c" "$c" "$c")
utf8=$utf8$(printf '|\360[\220-\277]%s%s|[\361-\363]%s%s%s|\364[\200-\217]%s%s' "$c" "$c" "$c" "$c" "$c" "$c" "$c")
text="([] !#-[^-~$(printf '\177')]|\\\\[\"\\\\bfnrt]|\\\\u00(0[0-7bef]|1[0-9a-f])|$utf8)*"

signature="\\{\"keyid\":\"$hex\",\"sig\":\"$base64\",\"spki\":\"$base64\"\\}"
envelope_grammar="\\{\"payload\":\"$base64\",\"payloadType\":\"[^\"\\\\]{0,256}\",\"signatures\":\\[$(any_of "$signature")\\]\\}"

floor="\\{\"channel\":\"$name\",\"name\":\"$name\",\"version\":$number\\}"
key="\\{\"algorithm\":\"$name\",\"keyid\":\"$hex\",\"spki\":\"$base64\"\\}"
bundle="\\{\"date\":\"$time\",\"manifest_sha256\":\"$hex\",\"reason\":\"$text\"\\}"
withdrawn="\\{\"date\":\"$time\",\"keyid\":\"$hex\",\"reason\":\"$text\"\\}"
role="\\{\"algorithms\":\\[$(any_of "\"$name\"")\\],\"keys\":\\[$(any_of "\"$hex\"")\\],\"role\":\"[^\"\\\\]{0,40}\",\"threshold\":$number\\}"
root_grammar="\\{\"created\":\"$time\",\"expires\":\"$time\",\"floors\":\\[$(any_of "$floor")\\],\"format\":$number,\
\"keys\":\\[$(any_of "$key")\\],\"name\":\"$name\",\"profile\":\"$word\",\"reset\":$bool,\
\"revoked_bundles\":\\[$(any_of "$bundle")\\],\"revoked_keys\":\\[$(any_of "$withdrawn")\\],\
\"roles\":\\[$(any_of "$role")\\],\"strict\":$bool,\"version\":$number\\}"

companion="\\{\"name\":\"$name\",\"sha256\":\"$hex\",\"size\":$number\\}"
built="(\"built\":\"$word\",)?"
absent="\\{\"absent\":true,$built\"content\":\"$hex\",\"executable\":$bool,\"installed_files\":$number,\"installed_size\":$number,\
\"kind\":\"$word\",\"path\":\"$text\",\"sha256\":\"$hex\",\"size\":$number\\}"
carried="\\{(\"base\":\"$hex\",)?$built\"encoding\":\"$word\",\"executable\":$bool,\"installed_files\":$number,\"installed_size\":$number,\
\"kind\":\"$word\",\"offset\":$number,\"path\":\"$text\",\"sha256\":\"$hex\",\"size\":$number,\
\"stored_sha256\":\"$hex\",\"stored_size\":$number(,\"verity\":\"$hex\")?\\}"
placement="\\{\"entry\":\"$text\",\"into\":\"$text\"(,\"left_out\":\\[\"$text\"(,\"$text\")*\\])?\
(,\"shared\":\\[\"$text\"(,\"$text\")*\\])?\\}"
runtime="(\"runtime\":\\{\"glibc\":\"$glibc\",\"kernel\":\"$dotted\"\\},)?"
gpu='[a-z0-9_ ]+'
gpu_code="(,\"gpu_code\":\\{\"$name\":\"$gpu\"(,\"$name\":\"$gpu\")*\\})?(,\"overruled\":\\[\"$name\"(,\"$name\")*\\])?"
startup="(,\"startup\":\\[\"$hex\"(,\"$hex\")*\\])?"
volume="\\{\"name\":\"[A-Za-z0-9][A-Za-z0-9._-]{0,254}\",\"size\":$number\\}"
recovery="(\"recovery\":\\{\"files\":\\[$(any_of "$volume")\\],\"groups\":$number,\"list_digest\":\"$hex\",\"parity\":$number\\},)?"
manifest_grammar="\\{(\"base\":\"$hex\",)?\"channel\":\"$name\",\"companions\":\\[$(any_of "$companion")\\],\"created\":\"$time\",\
\"entries\":\\[$(any_of "($carried|$absent)")\\],\"environment\":\\{\"imports\":\\[$(any_of "\"$name\"")\\],\
\"interpreter\":\"$text\",\"placements\":\\[$(any_of "$placement")\\],$runtime\"site_packages\":\"$text\"$startup\\},\
\"format\":$number,\"installer_level\":$number,\"name\":\"$name\",\"payload\":\\{\"chunk_list_digest\":\"$hex\",\
\"chunk_size\":$number,\"digest\":\"$word\",$recovery\"size\":$number,\"volumes\":\\[$(any_of "$volume")\\]\\},\
\"rollback_floor\":$number,\"target\":\\{\"arch\":\"$name\",(\"driver_floor\":\"$dotted\",)?\"glibc\":\"$glibc\",\"glibc_floor\":\"$glibc\"$gpu_code\\},\
\"version\":$number\\}"

size_of() { echo $(($(wc -c < "$1"))); }
sha256_of() { sha256sum < "$1" | sed 's/ .*//'; }
# One line without line break, of this grammar and nothing else; WHERE is for the message.
follows() {  # FILE GRAMMAR WHERE FORMAT
  [ "$(tr -d '\000-\037' < "$1" | wc -c)" -eq "$(size_of "$1")" ] && { cat "$1"; echo; } | grep -Eqx "$2" && return
  { ! grep -Eq "[,{]\"format\":$4[,}]" "$1" && grep -Eq '[,{]"format":[0-9]+[,}]' "$1"; } ||
    grep -Eq '[,{]"installer_level":(0|9|[1-9][0-9]+)[,}]' "$1" &&
    fail 11 'it is of a format that this script does not know' "$3" "format $4" '' 'use the audit.sh that came with it'
  fail 4 'it is not spelled as FORMAT.md says, to the byte' "$3" 'sorted keys, no spaces, known keys only' '' "$again"
}
# A document that follows its grammar as lines PATH<tab>VALUE, such as .payload.volumes.size<tab>4096. Escaped quotes and
# backslashes become \u0022 and \u005c, so that each " that is left begins or ends a string.
flat() {
  sed -e 's/\\\\/\\u005c/g' -e 's/\\"/\\u0022/g' | tr '"' '\n' | awk '
    function put(value) { print path[depth] (key == "" ? "" : "." key) "\t" value; key = "" }
    NR % 2 == 0 { string = $0; pending = 1; next }
    {
      rest = $0
      if (pending) { if (substr(rest, 1, 1) == ":") { key = string; rest = substr(rest, 2) } else put(string) }
      for (pending = 0; rest != ""; rest = substr(rest, used + 1)) {
        mark = substr(rest, 1, 1); used = 1
        if (mark == "{" || mark == "[") { path[depth + 1] = path[depth] (key == "" ? "" : "." key); ++depth; key = "" }
        else if (mark == "}" || mark == "]") { --depth; key = "" }
        else if (match(rest, /^[a-z0-9]+/)) { used = RLENGTH; put(substr(rest, 1, used)) }
      }
    }'
}
value() { sed -n "s/^\\.$1$tab//p" "$2"; }  # PATH FLAT_FILE
# Rules that need more than a grammar are in awk; these are the words that root and manifest share.
rules='
  function bad(code, what, got) { if (!fault) print "fault\t" code "\t" what "\t" got; fault = 1; exit }
  function too_large(n, most) { return length(n) > length(most) || (length(n) == length(most) && n "" > most "") }
  function integer(n, most, what) {
    if (too_large(n, most)) bad(4, "an integer is above " most ": " what, n)
    return n + 0
  }
  function check_time(s,  m, d, y, days) {
    y = substr(s, 1, 4) + 0; m = substr(s, 6, 2) + 0; d = substr(s, 9, 2) + 0
    days = (m == 4 || m == 6 || m == 9 || m == 11) ? 30 : 31
    if (m == 2) days = (y % 4 == 0 && (y % 100 != 0 || y % 400 == 0)) ? 29 : 28
    if (y < 1970 || m < 1 || m > 12 || d < 1 || d > days || substr(s, 12, 2) + 0 > 23 || substr(s, 15, 2) + 0 > 59 ||
        substr(s, 18, 2) + 0 > 59) bad(4, "not a time", s)
  }
  function plain(s) { gsub(/\\u0022/, "\"", s); gsub(/\\u005c/, "\\", s); return s }
  function most(count, limit, what) { if (count > limit) bad(4, "more than " limit " " what, count) }'
# Runs these rules over FLAT_FILE into $t/facts, and ends with the fault that they found, if there is one.
judge() {  # RULES FLAT_FILE WHERE
  awk -F "$tab" "$rules$1" "$2" > "$t/facts" || fail 11 'this awk does not run the rules' "$3"
  line=$(sed -n "/^fault$tab/{p;q;}" "$t/facts")
  if [ -z "$line" ]; then
    grep -qx 'whole' "$t/facts" || fail 11 'this awk does not run the rules to their end' "$3"
    return
  fi
  line=${line#*"$tab"} code=${line%%"$tab"*} line=${line#*"$tab"}
  fail "$code" "${line%%"$tab"*}" "$3" '' "${line#*"$tab"}" "$sender"
}

# --- 3. Keys and signatures. SPKI prefixes are FORMAT.md's table; whatever else is no key of ours.
kind_of() {  # FILE -> its kind; "malformed" as one of ours in another spelling; "other" as a kind that never counts
  spki=$(od -An -v -tx1 "$1" | tr -d ' \n')
  case ${#spki}.$spki in
    88.302a300506032b6570032100*)
      case ${spki#????????????????????????} in  # points of small order, and y at or above 2^255 - 19
        0[01]000000000000000000000000000000000000000000000000000000000000[08]0) echo malformed ;;
        26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc[08]5) echo malformed ;;
        c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03[7f]a) echo malformed ;;
        e[c-f]ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff[7f]f) echo malformed ;;
        f?ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff[7f]f) echo malformed ;;
        *) echo ed25519 ;;
      esac ;;
    182.3059301306072a8648ce3d020106082a8648ce3d03010703420004*) echo ecdsa-p256 ;;
    240.3076301006072a8648ce3d020106052b8104002203620004*) echo ecdsa-p384 ;;
    182.3059301306072a8648ce3d020106082a811ccf5501822d03420004*) echo sm2 ;;
    *.30*06032b6570* | *06072a8648ce3d020130* | *06082a8648ce3d030107* | *06052b81040022* | *06082a811ccf5501822d*)
      echo malformed ;;
    *) openssl asn1parse -inform DER -in "$1" > /dev/null 2>&1 && echo other || echo malformed ;;
  esac
}
# As long as its DER says: `openssl dgst` reads no further than the longest signature of a key, and would not see a tail.
whole_der() {
  der=$(od -An -v -tx1 "$1" | tr -d ' \n')
  case $der in 30[0-7][0-9a-f]*) ;; *) return 1 ;; esac
  der=${der#30}
  [ "$(size_of "$1")" -eq $((0x${der%"${der#??}"} + 2)) ]
}
holds() {  # KIND PEM SIGNATURE MESSAGE
  [ "$1" = ed25519 ] || whole_der "$3" || return 1
  case $1 in
    ed25519) [ "$(size_of "$3")" -eq 64 ] && openssl pkeyutl -verify -pubin -inkey "$2" -rawin -in "$4" -sigfile "$3" ;;
    ecdsa-p256) openssl dgst -sha256 -verify "$2" -signature "$3" "$4" ;;
    ecdsa-p384) openssl dgst -sha384 -verify "$2" -signature "$3" "$4" ;;
    sm2) openssl pkeyutl -verify -pubin -inkey "$2" -rawin -digest sm3 -pkeyopt distid:1234567812345678 \
      -in "$4" -sigfile "$3" ;;
  esac > /dev/null 2>&1
}
# Whether this openssl has the kind at all: it must make a signature and check it. Asked only after one did not hold.
can_check() {  # KIND
  echo probe > "$t/probe"
  case $1 in
    ed25519) openssl genpkey -algorithm ed25519 -out "$t/probe.key" &&
      openssl pkeyutl -sign -inkey "$t/probe.key" -rawin -in "$t/probe" -out "$t/probe.sig" ;;
    ecdsa-*) openssl genpkey -algorithm EC -pkeyopt "ec_paramgen_curve:P-${1#ecdsa-p}" -out "$t/probe.key" &&
      openssl dgst "-sha${1#ecdsa-p}" -sign "$t/probe.key" -out "$t/probe.sig" "$t/probe" ;;
    sm2) openssl genpkey -algorithm SM2 -out "$t/probe.key" && openssl pkeyutl -sign -inkey "$t/probe.key" -rawin \
      -digest sm3 -pkeyopt distid:1234567812345678 -in "$t/probe" -out "$t/probe.sig" ;;
  esac > /dev/null 2>&1 && openssl pkey -in "$t/probe.key" -pubout -out "$t/probe.pem" 2> /dev/null &&
    holds "$1" "$t/probe.pem" "$t/probe.sig" "$t/probe"
}
skipped=''  # kinds of FORMAT.md's table that this openssl does not have: the verdict cannot be good any more
skip() { case " $skipped " in *" $1 "*) ;; *) skipped="$skipped${skipped:+ }$1" ;; esac; }
# A key on its curve, as $pem. False when this openssl cannot tell.
load_key() {  # FILE KIND ID WHERE
  pem=$t/pem.$3
  [ -s "$pem" ] || openssl pkey -pubin -inform DER -in "$1" -out "$pem" 2> /dev/null && return
  can_check "$2" && fail 4 'a public key is not a point of its curve' "$4" "$2" '' "$sender"
  skip "$2"
  return 1
}
# Line N of the seal: its document in $t/doc, its type in $type, and in $t/verdicts a line "KEYID holds|unknown" for each
# signature. One that does not hold ends everything; it does not help that another one does.
open_envelope() {  # N WHERE
  sed -n "$1p" "$t/seal" > "$t/line"
  flat < "$t/line" > "$t/envelope"
  type=$(value payloadType "$t/envelope")
  value payload "$t/envelope" | base64 -d > "$t/doc" || fail 4 'the payload is no base64' "$2" '' '' "$again"
  [ "$type" != "$root_type" ] || [ "$(size_of "$t/line")" -le 524288 ] || fail 4 'a root is larger than 512 KiB' "$2"
  { printf 'DSSEv1 %d %s %d ' ${#type} "$type" "$(size_of "$t/doc")"; cat "$t/doc"; } > "$t/message"
  awk -F "$tab" '$1 == ".signatures.keyid" { id = $2 } $1 == ".signatures.sig" { sig = $2 == "" ? "-" : $2 }
    $1 == ".signatures.spki" { print id, sig, $2 == "" ? "-" : $2 }' "$t/envelope" > "$t/signatures"
  [ "$(wc -l < "$t/signatures")" -le 64 ] || fail 4 'more than 64 signatures' "$2"
  awk 'NR > 1 && !($1 "" > last "") { exit 1 } length($2) > 16384 || length($3) > 8192 { exit 1 } { last = $1 }' \
    "$t/signatures" || fail 4 'signatures are not sorted, a key signed twice, or one is too long' "$2" '' '' "$again"
  while read -r id sig spki; do
    printf '%s' "${spki#-}" | base64 -d > "$t/key"
    [ "$(sha256_of "$t/key")" = "$id" ] || fail 4 'a keyid is not the SHA-256 of its key' "$2, key sha256:$id" '' '' "$again"
  done < "$t/signatures"
}
check_signatures() {  # WHERE
  : > "$t/verdicts"
  while read -r id sig spki; do
    at="$1, key sha256:$id"
    printf '%s' "${spki#-}" | base64 -d > "$t/key"
    printf '%s' "${sig#-}" | base64 -d > "$t/sig"
    kind=$(kind_of "$t/key")
    verdict=unknown
    case $kind in
      malformed) fail 4 'a public key is not spelled as keys are' "$at" '' '' "$sender" ;;
      other) note "a signature of another kind, which counts for nothing: $at" ;;
      *) if load_key "$t/key" "$kind" "$id" "$at"; then
          if holds "$kind" "$pem" "$t/sig" "$t/message"; then verdict=holds
          elif can_check "$kind"; then fail 6 'a signature does not hold: document or signature was changed' "$at" \
            "$kind over the document sha256:$(sha256_of "$t/doc")" '' "$again"
          else skip "$kind"; fi
        fi ;;
    esac
    echo "$id $verdict" >> "$t/verdicts"
  done < "$t/signatures"
}

# --- 4. Roots. The facts of a root, for the steps behind it: "role ROLE THRESHOLD", "kind ROLE ALGORITHM",
# "member ROLE KEYID ALGORITHM", "revoked KEYID", "bundle SHA256", "floor CHANNEL NAME VERSION".
# shellcheck disable=SC2016  # awk's fields, not the shell's
root_rules='
  function in_order(list, item, what) {
    if (list in last && !(item "" > last[list] "")) bad(4, "not sorted, or twice: " what, item)
    last[list] = item
  }
  function reason(s) { gsub(/\\u00../, "x", s); gsub(/\\[bfnrt]/, "x", s); if (length(s) > 400) bad(4, "a reason is too long") }
  $1 == ".created" || $1 == ".expires" || $1 ~ /date$/ { check_time($2) }
  $1 == ".floors.channel" { channel = $2 }
  $1 == ".floors.name" { stream = $2; in_order("f", channel " " stream, "floors") }
  $1 == ".floors.version" { integer($2, "9007199254740991", "floor"); most(++floors, 2000, "floors"); print "floor", channel, stream, $2 }
  $1 == ".format" && $2 != "1" { bad(11, "the root is of a format that this script does not know", $2) }
  $1 == ".keys.algorithm" { if (length($2) > 40) bad(4, "a name is too long", $2); algorithm = $2 }
  $1 == ".keys.keyid" { in_order("k", $2, "keys"); kind[$2] = algorithm; most(++keys, 64, "keys") }
  $1 == ".keys.spki" && length($2) > 8192 { bad(4, "a key is too long") }
  $1 == ".profile" { profile = $2; if ($2 !~ /^(standard|fips|gm)$/) bad(11, "the profile is not known", $2) }
  $1 == ".revoked_bundles.manifest_sha256" { in_order("b", $2, "revoked bundles"); most(++bundles, 2000, "revocations"); print "bundle", $2 }
  $1 == ".revoked_keys.keyid" { in_order("r", $2, "revoked keys"); most(++gone, 2000, "revocations"); revoked[$2]; print "revoked", $2 }
  $1 ~ /\.reason$/ { reason($2) }
  $1 == ".roles.algorithms" { kinds[++nkinds] = $2; in_order("a" roles, $2, "algorithms of a role"); most(nkinds, 16, "algorithms") }
  $1 == ".roles.keys" { ids[++nids] = $2; in_order("i" roles, $2, "keys of a role"); most(nids, 64, "keys of a role") }
  $1 == ".roles.role" { role = $2; in_order("o", $2, "roles"); named[$2]
    if ($2 !~ /^(release|root|site)$/) bad(11, "the root names a role that this script does not know", $2) }
  $1 == ".roles.threshold" {
    integer($2, "9007199254740991", "threshold")
    if ($2 + 0 < 1 || $2 + 0 > nids) bad(4, "the threshold of role " role " is not from 1 to " nids, $2)
    if (nkinds > $2 + 0) bad(4, "role " role " asks for more kinds than signatures", nkinds)
    for (i = 1; i <= nids; ++i) {
      if (!(ids[i] in kind)) bad(4, "role " role " names a key that the root does not have", ids[i])
      if (ids[i] in revoked) bad(4, "role " role " names a revoked key", ids[i])
      if (profile == "fips" && kind[ids[i]] !~ /^ecdsa-/) bad(4, "the profile is fips and takes ECDSA only", kind[ids[i]])
      have[roles, kind[ids[i]]]; print "member", role, ids[i], kind[ids[i]]
    }
    for (i = 1; i <= nkinds; ++i) {
      if (!((roles, kinds[i]) in have)) bad(4, "role " role " asks for a kind that none of its keys can make", kinds[i])
      if (kinds[i] == "sm2") gm[roles]; print "kind", role, kinds[i]
    }
    if (profile == "gm" && !(roles in gm)) bad(4, "the profile is gm, and role " role " does not ask for sm2")
    print "role", role, $2; most(++roles, 3, "roles"); nids = nkinds = 0
  }
  $1 == ".version" {  # the last key
    if (integer($2, "1000000", "version") < 1) bad(4, "root versions start at 1", $2)
    if (!(("root" in named) && ("release" in named))) bad(4, "the role root or release is missing")
    print "whole"
  }
  BEGIN { roles = 0 }'
read_root() {  # WHERE; of $t/doc into $t/root (flat) and $t/facts
  follows "$t/doc" "$root_grammar" "$1" 1
  flat < "$t/doc" > "$t/root"
  judge "$root_rules" "$t/root" "$1"
  awk -F "$tab" '$1 == ".keys.algorithm" { a = $2 } $1 == ".keys.keyid" { k = $2 }
    $1 == ".keys.spki" { print a, k, $2 == "" ? "-" : $2 }' "$t/root" > "$t/keys"
  while read -r label id spki; do
    printf '%s' "${spki#-}" | base64 -d > "$t/key"
    [ "$(sha256_of "$t/key")" = "$id" ] || fail 4 'a keyid is not the SHA-256 of its key' "$1" '' "$id" "$sender"
    case $label in ed25519 | ecdsa-p256 | ecdsa-p384 | sm2) kind=$(kind_of "$t/key") ;; *) continue ;; esac
    [ "$kind" != other ] || fail 11 'a key is of a kind that this script does not know' "$1, key sha256:$id" "$label"
    [ "$kind" = "$label" ] || fail 4 'a key is of another kind than its label says' "$1, key $id" "$label" "$kind" "$sender"
    load_key "$t/key" "$kind" "$id" "$1, key sha256:$id" || :
  done < "$t/keys"
}
# The role of the root with these facts is met by the verdicts.
require_role() {  # ROLE FACTS WHERE
  awk -v role="$1" '
    FNR == NR { if ($2 == role) { if ($1 == "role") threshold = $3; if ($1 == "kind") want[$3]; if ($1 == "member") kind[$3] = $4 }
                if ($1 == "revoked") revoked[$2]; next }
    $1 in kind { ++hoped; hope[kind[$1]]; if ($2 == "holds") { ++counted; have[kind[$1]] } next }
    $1 in revoked { ++withdrawn }
    END {
      met = counted >= threshold; would = hoped >= threshold
      for (k in want) { if (!(k in have)) { met = 0; none = none " " k } if (!(k in hope)) would = 0 }
      print met ? 0 : would ? 11 : withdrawn ? 16 : 6
      print (counted + 0) " of " threshold (none == "" ? "" : ", none of kind" none)
    }' "$2" "$t/verdicts" > "$t/role"
  { read -r code; read -r got; } < "$t/role"
  [ "$code" != 11 ] || fail 11 "this machine's openssl lacks a kind of signature, so the $1 signatures cannot be counted" \
    "$3" "$skipped" "$(openssl version)" "$elsewhere"
  [ "$code" = 0 ] || fail "$code" "too few $1 signatures by keys that the root trusts" "$3" '' "$got" \
    'ask the sender for the missing signatures'
}
# What the earlier root revoked, the later one revokes too.
kept() { awk 'FNR == NR { if ($1 == "revoked" || $1 == "bundle") after[$1, $2]; next }
  ($1 == "revoked" || $1 == "bundle") && !(($1, $2) in after) { exit 1 }' "$2" "$1"; }

# --- 5. The seal: found, copied once, and from there on only the copy is read.
# What media and copies make of names; only for messages.
plain_name() { printf '%s' "${1##*/}" | tr A-Z a-z | sed 's/;[0-9]*$//'; }
# "env-1.chu", "env-20~1.chu": WANTED, cut to eight letters and three. Both are plain.
is_cut() {  # OWN WANTED
  begin=${1%.*}
  [ "$begin" != "$1" ] && [ ${#begin} -le 8 ] && [ "${1##*.}" = "$(printf %.3s "${2##*.}")" ] || return 1
  case $1 in *[!a-z0-9._~-]*) return 1 ;; esac
  case $begin in *~* | ????????) ;; *) [ "$begin" = "${2%.*}" ]; return ;; esac
  begin=$(printf '%s' "${begin%%~*}" | tr -cd a-z0-9)
  case $begin in '') return 1 ;; esac
  case $(printf '%s' "${2%.*}" | tr -cd a-z0-9) in "$begin"*) ;; *) return 1 ;; esac
}
# "env-1 (1).chunks", "env-1 - Copy.chunks", "env-1 copy 2.chunks": what is left without the mark of a second copy.
original_of() {
  printf '%s' "$1" | sed -n -e 's/ - .*\(\.[^.]*\)$/\1/p;t' -e 's/ \{0,1\}([0-9][0-9]*)\(\.[^.]*\)$/\1/p;t' \
    -e 's/ copy\( [0-9][0-9]*\)\{0,1\}\(\.[^.]*\)$/\2/p'
}
changed_from() {  # OWN WANTED -> what has become of it, or nothing
  own_plain=$(plain_name "$1") wanted_plain=$(plain_name "$2")
  if [ "$own_plain" = "$wanted_plain" ]; then
    printf '%s' 'which is this name in another case, or with what discs add'
  elif is_cut "$own_plain" "$wanted_plain"; then
    printf '%s' 'which may be this name, cut to eight letters and three'
  elif [ "$(original_of "$1")" = "$2" ]; then
    printf '%s' 'which is the name of a second copy'
  fi
}
instead_of() {  # FILE -> one beside it whose name was this one, and what has become of it
  for other in "${1%/*}"/*; do
    [ "$other" != "$1" ] || continue
    became=$(changed_from "${other##*/}" "${1##*/}")
    [ -z "$became" ] || { printf '%s, %s' "${other##*/}" "$became"; return; }
  done
}
plain_file() {  # FILE WHAT; a link, pipe or folder is refused before it is opened
  if [ ! -e "$1" ] && [ ! -L "$1" ]; then
    got=$(instead_of "$1")
    [ -z "$got" ] || fail 7 "$2 is missing" "$1" '' "$got" "$names"
    fail 7 "$2 is missing" "$1" '' '' "copy it into the bundle's folder"
  fi
  if [ -L "$1" ] || [ ! -f "$1" ]; then fail 4 'this is not a plain file' "$1" 'a regular file'; fi
  [ -r "$1" ] || fail 3 "$2 cannot be read" "$1"
}
[ -e "$folder" ] || fail 7 "the bundle's folder is not there" "$folder"
[ ! -f "$folder" ] || fail 7 'there is no seal here' "$folder" 'the folder of a bundle' 'a file' \
  "name the bundle's folder; an archive has to be unpacked first, a disc's image mounted"
if [ ! -d "$folder" ] || [ ! -r "$folder" ] || [ ! -x "$folder" ]; then fail 3 'this folder cannot be opened' "$folder"; fi
seal=''
for file in "$folder"/*.seal "$folder"/.*.seal; do
  case ${file##*/} in ._*) continue ;; esac  # macOS writes these
  [ -e "$file" ] || [ -L "$file" ] || continue
  [ -z "$seal" ] || fail 10 'the folder holds more than one seal' "$folder" '' "${seal##*/} and ${file##*/}" \
    'keep bundles one to a folder; a name with (1) or - Copy is that of a second copy, to be moved away'
  seal=$file
done
if [ -z "$seal" ]; then
  got='' next="name the bundle's folder"
  for file in "$folder"/*; do
    case $(plain_name "$file") in
      *.seal) got="${file##*/}: the names are in upper case here, or with what discs add" next=$names; break ;;
      *.sea) got="${file##*/}: the names are cut to eight letters and three here" next=$names; break ;;
      *.zip | *.tar | *.tgz | *.gz | *.zst | *.xz | *.7z | *.rar)
        [ -n "$got" ] || { got="an archive: ${file##*/}" next='unpack it, and name the folder in which the seal is then'; } ;;
    esac
    for inside in "$file"/*.seal; do
      [ ! -f "$inside" ] || { got="a folder with a seal: ${file##*/}" next="name that folder: $file"; }
    done
  done
  fail 7 'there is no seal here' "$folder" 'a file named NAME-VERSION.seal' "$got" "$next"
fi
plain_file "$seal" 'the seal'
[ "$(size_of "$seal")" -le 67108864 ] || fail 4 'the seal is larger than 64 MiB' "$seal"
dd if="$seal" of="$t/seal" bs=1048576 count=65 2> /dev/null || fail 3 'the seal cannot be read' "$seal"
lines=$(($(wc -l < "$t/seal")))
if [ "$(tr -d '\n -~' < "$t/seal" | wc -c)" -ne 0 ] || [ "$(grep -c '' "$t/seal")" -ne "$lines" ] ||
  grep -Evqx "$envelope_grammar" "$t/seal"; then
  fail 4 'the seal is not spelled as FORMAT.md says, to the byte' "$seal" 'signed documents, one a line' '' "$again"
fi
if [ "$lines" -lt 2 ] || [ "$lines" -gt 1025 ]; then
  fail 4 'a seal holds 1 to 1024 roots and the manifest' "$seal" '' "$lines signed documents"
fi

# --- 6. The chain of roots, from ours on: each is signed by itself and by the one before. Those before ours are not
# looked at, so that nobody can have them cost time.
root_type=application/vnd.sealift.root.v1+json
bundle_type=application/vnd.sealift.bundle.v1+json
trusted='' floor_time='' previous=''
n=1
while [ $n -lt "$lines" ]; do
  where="$seal, line $n"
  open_envelope $n "$where"
  if [ -z "$trusted" ] && [ "$(sha256_of "$t/doc")" != "$pinned" ]; then
    n=$((n + 1))
    continue
  fi
  [ "$type" = "$root_type" ] || fail 4 'this is no root' "$where" "$root_type" "$type" "$sender"
  read_root "$where"
  check_signatures "$where"
  require_role root "$t/facts" "$where"
  version=$(value version "$t/root") created=$(value created "$t/root")
  if [ -n "$previous" ]; then
    [ "$version" -eq $((previous + 1)) ] ||
      fail 6 'the chain of roots has a gap' "$where" "root $((previous + 1))" "root $version" 'get the roots between'
    require_role root "$t/previous" "$where, which root $previous must have signed"
    kept "$t/previous" "$t/facts" || fail 6 'a root takes a revocation back' "$where" '' '' "ask the root's owner"
  fi
  mv "$t/facts" "$t/previous"
  previous=$version
  if [ -n "$trusted" ]; then
    if [ "$(value reset "$t/root")" = true ] || expr "$created" '>' "$floor_time" > /dev/null; then floor_time=$created; fi
  else
    trusted=$version floor_time=$created
  fi
  n=$((n + 1))
done
[ -n "$trusted" ] || fail 6 'the root with your fingerprint is not among those of the seal' "$seal" "sha256:$pinned" \
  "sha256:$(sha256_of "$t/doc")" "compare it with what the root's owner told you by another way"
expires=$(value expires "$t/root") strict=$(value strict "$t/root") profile=$(value profile "$t/root")

# --- 7. The manifest's signatures, by the newest root.
open_envelope "$lines" "$seal, the manifest"
identity=$(sha256_of "$t/doc")
grep -qx "bundle $identity" "$t/previous" &&
  fail 16 'this bundle was withdrawn' "$seal" '' "sha256:$identity" 'ask the sender for a newer one'
check_signatures "$seal, the manifest"
require_role release "$t/previous" "$seal, the manifest"
grep -q '^role site ' "$t/previous" && require_role site "$t/previous" "$seal, the manifest"
[ "$type" = "$bundle_type" ] || fail 11 'the seal is for something else' "$seal" "$bundle_type" "$type"

# --- 8. The manifest. Prints "volume NAME SIZE" and "companion NAME SIZE SHA256" for the steps behind it.
# shellcheck disable=SC2016
manifest_rules='
  # The name without upper and lower case, for the letters whose other case and whose one spelling need no table: ASCII,
  # Latin-1, Russian (both are shifted by a constant), kana, Chinese and Korean (which have none). Others are not known.
  function fold(s,  out, i, n, a, b, c) {
    s = tolower(s)
    if (s !~ /[^ -~]/) return s
    if (!(1 in byte)) for (i = 1; i < 256; ++i) { byte[i] = sprintf("%c", i); ordinal[byte[i]] = i }
    n = length(s)
    for (i = 1; i <= n; ++i) {
      a = ordinal[substr(s, i, 1)]; b = ordinal[substr(s, i + 1, 1)]; c = ordinal[substr(s, i + 2, 1)]
      if (a < 128) { out = out byte[a]; continue }
      if (a == 195) {  # U+00C0 to U+00FF; sharp s is two letters
        if (b == 159) out = out "ss"; else out = out byte[a] byte[b < 159 && b != 151 ? b + 32 : b]
        ++i
      } else if (a == 208 && b >= 144) {  # U+0410 to U+043F
        if (b < 160) out = out byte[208] byte[b + 32]; else if (b < 176) out = out byte[209] byte[b - 32]; else out = out byte[208] byte[b]
        ++i
      } else if (a == 209 && b < 144) { out = out byte[a] byte[b]; ++i }  # U+0440 to U+044F
      else if ((a == 227 && ((b == 129 && c >= 129) || (b == 130 && c < 151) || (b == 130 && c >= 161) || (b == 131 && c < 189))) ||
               (a == 228 && b >= 184) || (a >= 229 && a <= 233 && !(a == 233 && b == 191)) ||
               (a >= 235 && a <= 236) || (a == 234 && b >= 176) || (a == 237 && (b < 158 || (b == 158 && c < 164)))) {
        out = out byte[a] byte[b] byte[c]; i += 2
      } else { strange = s; return s }
    }
    return out
  }
  function safe(s, what,  n, i, part) {
    s = plain(s)
    if (s == "" || length(s) > 4096 || substr(s, 1, 1) == "/" || s ~ /[\\\177]/) bad(4, "a path is not safe: " what, s)
    n = split(s, part, "/")
    for (i = 1; i <= n; ++i)
      if (part[i] == "" || part[i] == "." || part[i] == ".." || length(part[i]) > 255) bad(4, "a path is not safe: " what, s)
    if (s ~ /^[A-Za-z]:/) bad(4, "a path starts with a drive letter: " what, s)
    return s
  }
  function glibc(s,  part, n, i) {
    n = split(s, part, "."); if (length(s) > 20) bad(4, "a glibc version is too long", s)
    for (i = 1; i <= n; ++i) if (part[i] + 0 > 4294967295) bad(4, "not a glibc version", s)
  }
  $1 == ".base" { base = 1 }
  $1 == ".channel" { channel = $2 }
  $1 == ".companions.name" { cname = $2; most(++companions, 16, "companions")
    if (tolower($2) in taken) bad(4, "a companion has the name of another file", $2); taken[tolower($2)] }
  $1 == ".companions.sha256" { csha = $2 }
  $1 == ".companions.size" { integer($2, "4294967296", "size of a companion"); print "companion", cname, $2, csha }
  $1 == ".created" { check_time($2) }
  $1 == ".entries.absent" { absent[++e]; delta = 1; needed = 2; encoding = "" }
  $1 == ".entries.base" { patch = 1 }
  $1 == ".entries.built" { built = 1; builds = 1; if ($2 !~ /^(sandboxed|unsandboxed)$/) bad(11, "a way of building is not known", $2)
    if ($2 == "unsandboxed") print "unsandboxed" }
  $1 == ".entries.executable" { runs = $2 }
  $1 == ".entries.encoding" { ++e; encoding = $2; if ($2 !~ /^(identity|zstd|patch)$/) bad(11, "an encoding is not known", $2)
    if ((encoding == "patch") != patch + 0) bad(4, "a patch, and nothing else, says what it builds on", patch + 0)
    if (patch) { delta = 1; patches = 1 }; patch = 0 }
  $1 == ".entries.installed_files" { names = $2; if ((files += integer($2, "5000000", $1)) > 5000000) bad(4, "too many files once installed") }
  $1 == ".entries.installed_size" { taken_room = $2; if ((bytes += integer($2, "1125899906842624", $1)) > 1125899906842624) bad(4, "too large once installed") }
  $1 == ".entries.kind" { what = $2; if ($2 !~ /^(wheel|tree|file|squashfs)$/) bad(11, "a kind of entry is not known", $2)
    if (open_image) bad(4, "an image has no root hash for dm-verity", path[e - 1])
    if (encoding == "patch" && $2 != "wheel") bad(4, "only a wheel is carried as a patch", $2)
    if (built && $2 != "wheel") bad(4, "only a wheel says how it was built", $2); built = 0
    if ($2 == "squashfs") { if (images++) bad(4, "a bundle carries one image of its environment", images); open_image = 1
      if (encoding != "identity") bad(4, "an image is carried as it is", encoding)
      if (names "" != "0" || taken_room "" != "0" || runs != "false") bad(4, "an image is mounted, and not installed", names) } }
  $1 == ".entries.offset" { offset[e] = $2 }
  $1 == ".entries.path" {
    path[e] = safe($2, "entries"); kind[path[e]] = what; low = fold(path[e])
    if (e > 1 && !(path[e] "" > path[e - 1] "")) bad(4, "entries must be sorted by path and unique", path[e])
    if (low in folded) bad(4, "two paths differ in upper and lower case only", path[e])
    folded[low]
  }
  $1 == ".entries.sha256" { sha = $2 }
  $1 == ".entries.size" { integer($2, "1125899906842624", $1); size = $2 }
  $1 == ".entries.stored_sha256" { stored_sha[e] = $2 }
  $1 == ".entries.stored_size" { stored[e] = $2
    if (encoding == "identity" && (size != $2 || sha "" != stored_sha[e] "")) bad(4, "an entry stored as it is must have equal sizes and digests", path[e]) }
  $1 == ".entries.verity" { if (!open_image) bad(4, "a root hash for dm-verity is of an image alone", path[e]); open_image = 0
    if (stored[e] + 0 == 0 || (stored[e] + 0) % 4096) bad(4, "an image consists of whole blocks of 4096 bytes", stored[e]) }
  $1 == ".environment.imports" { most(++imports, 1000, "imports") }
  $1 == ".environment.interpreter" || $1 == ".environment.site_packages" { safe($2, $1) }
  $1 == ".environment.placements.entry" { placed = safe($2, $1); shown[placed]; last_out = last_shared = ""; if (!(placed in kind)) bad(4, "a placement names no entry", placed)
    if (kind[placed] == "squashfs") bad(4, "an image is mounted, and not placed", placed) }
  $1 == ".environment.placements.into" {
    if ($2 != "") { into = fold(safe($2, $1)); if (into ~ /^generation\.json(\/|$)/) bad(4, "a place is reserved", into) }
    if (kind[placed] != "tree" && ($2 == "") != (kind[placed] == "wheel")) bad(4, "a file needs a place, a wheel must have none", placed)
    if (kind[placed] == "file") { if (into in places) bad(4, "two files have one place", into); places[into] }
  }
  $1 == ".environment.placements.left_out" { place = safe($2, $1); needed = 2
    if (kind[placed] != "wheel") bad(4, "only files of a wheel are left out", placed)
    if (last_out != "" && !(place "" > last_out "")) bad(4, "paths that are left out must be sorted and unique", place)
    last_out = place
  }
  $1 == ".environment.placements.shared" { folder = safe($2, $1); shares = 1
    if (kind[placed] != "wheel") bad(4, "only a wheel shares a package", placed)
    if (last_shared != "" && !(folder "" > last_shared "")) bad(4, "folders that are shared must be sorted and unique", folder)
    last_shared = folder
  }
  $1 == ".environment.startup" { startup = 1; most(++startups, 1000, "startup")
    if (last_file != "" && !($2 "" > last_file "")) bad(4, "digests of start-up files must be sorted and unique", $2)
    last_file = $2
  }
  $1 == ".environment.runtime.glibc" { glibc($2); needed = 2 }
  $1 == ".format" && $2 != "2" { bad(11, "the bundle is of a format that this script does not know", $2) }
  $1 == ".installer_level" { level = $2; if ($2 > 8) bad(11, "the bundle needs a newer installer", $2) }
  $1 == ".name" { name = $2 }
  $1 == ".payload.chunk_size" {
    chunk = integer($2, "16777216", $1)
    for (power = 4096; power < chunk; power *= 2) {}
    if (power != chunk) bad(4, "the chunk size must be a power of two from 4 KiB to 16 MiB", $2)
  }
  $1 == ".payload.digest" && $2 !~ /^(sha256|sm3)$/ { bad(11, "the chunks are digested with an algorithm that is not known", $2) }
  $1 == ".payload.recovery.files.name" { rname[++rec] = $2; most(rec, 10000, "recovery files") }
  $1 == ".payload.recovery.files.size" { integer($2, "1125899906842624", $1); print "recovery", rname[rec], $2 }
  $1 == ".payload.recovery.groups" { help = 1; integer($2, "2097152", $1); print "groups", $2 }
  $1 == ".payload.recovery.parity" { integer($2, "255", $1); print "parity", $2 }
  $1 == ".payload.size" { left = total = integer($2, "1125899906842624", $1)
    if (total > 2097152 * chunk) bad(4, "more than 2097152 chunks", $2) }
  $1 == ".payload.volumes.name" { vname[++v] = $2; most(v, 10000, "volumes") }
  $1 == ".payload.volumes.size" {
    if (too_large($2, "9007199254740991") || $2 + 0 > left || $2 + 0 == 0) bad(4, "the volumes do not add up to the payload", $2)
    left -= $2
    print "volume", vname[v], $2
  }
  $1 == ".rollback_floor" { floor = integer($2, "9007199254740991", $1) }
  $1 == ".target.driver_floor" { needed = 2 }
  $1 ~ /^\.target\.gpu_code\./ { gpu = 1; if ($1 "" <= component "") bad(4, "components must be sorted and unique", $1)
    component = $1; if (length($2) > 1000) bad(4, "more than 1000 characters of GPU code", $1) }
  $1 == ".target.overruled" { gpu = 1; if ($2 "" <= check "") bad(4, "checks must be sorted and unique", $2); check = $2 }
  $1 == ".target.glibc" || $1 == ".target.glibc_floor" { glibc($2) }
  $1 == ".version" {  # the last key: everything was seen
    if (startup) needed = 3
    if (gpu) needed = 4
    if (patches || help) needed = 5
    if (builds) needed = 6
    if (shares) needed = 7
    if (images) needed = 8
    if (open_image) bad(4, "an image has no root hash for dm-verity", path[e])
    if (level + 0 < needed + 0) bad(4, "it uses what installers of its level lack", level)
    version = $2
    if (integer($2, "9007199254740991", $1) < floor) bad(4, "a rollback floor above its own version", floor)
    for (i = 1; i <= v; ++i) if (vname[i] != name "-" version sprintf(".vol%03d", i)) bad(4, "volumes must be named in order", vname[i])
    for (i = 1; i <= rec; ++i) if (rname[i] != name "-" version sprintf(".rec%03d", i)) bad(4, "recovery files must be named in order", rname[i])
    for (low in taken) if (index(low, tolower(name "-" version ".")) == 1) bad(4, "a companion has the name of another file", low)
    if (left || !total) bad(4, "the volumes do not add up to the payload", left)
    if (!base && images && !patches) { delta = 0; for (i = 1; i <= e; ++i) if ((i in absent) && !(path[i] in shown)) delta = 1 }
    if (base + 0 != delta + 0) bad(4, "an entry is absent, or a patch, exactly in a delta, which names its base", base + 0)
    for (i = 1; i <= e; ++i) {
      if (!(i in absent) && (too_large(offset[i], "9007199254740991") || offset[i] + 0 > total || too_large(stored[i], "9007199254740991") ||
          stored[i] + 0 > total - offset[i])) bad(4, "an entry ends outside the payload", path[i])
      n = split(fold(path[i]), part, "/"); above = part[1]
      for (j = 2; j <= n; ++j) { if (above in folded) bad(4, "an entry lies below another entry", path[i]); above = above "/" part[j] }
      if (!(i in absent)) print "range", offset[i], stored[i], stored_sha[i], path[i]
    }
    if (strange != "") bad(11, "which names are one without upper and lower case cannot be told here for these letters", strange)
    print "whole"
  }'
where="$seal, the manifest"
follows "$t/doc" "$manifest_grammar" "$where" 2
flat < "$t/doc" > "$t/manifest"
judge "$manifest_rules" "$t/manifest" "$where"
! grep -q '^unsandboxed$' "$t/facts" ||
  note "$(grep -c '^unsandboxed$' "$t/facts") wheel(s) were built outside of a sandbox, as the manifest says"
grep '^range ' "$t/facts" | sort -k2,2n | awk '
  NR > 1 && $2 + 0 == last { if ($3 != size || $4 "" != sha "") exit 1; next }
  $2 + 0 < end { exit 1 }
  { last = $2 + 0; size = $3; sha = $4; end = $2 + $3 }' || fail 4 'two entries overlap in the payload' "$where" '' '' "$sender"
name=$(value name "$t/manifest") channel=$(value channel "$t/manifest") version=$(value version "$t/manifest")
size=$(value payload.size "$t/manifest") chunk_size=$(value payload.chunk_size "$t/manifest")
# The size of each chunk, in order: an entry begins a chunk and ends one; what lies between is cut alike.
grep '^range ' "$t/facts" | awk '{ printf "%.0f\n%.0f\n", $2, $2 + $3 }' | sort -nu | awk -v size="$size" -v chunk="$chunk_size" '
  function cut(to) { for (; to - at > chunk; at += chunk) print chunk; if (to > at) printf "%.0f\n", to - at; at = to }
  BEGIN { at = 0 }
  $1 + 0 > 0 && $1 + 0 < size + 0 { cut($1 + 0) }
  END { cut(size + 0) }' > "$t/layout"
chunks=$(($(wc -l < "$t/layout")))
[ "$chunks" -le 2097152 ] || fail 4 'more than 2097152 chunks' "$where" '' "$chunks" "$sender"
grep '^volume ' "$t/facts" | awk 'FNR == NR { size[FNR] = $1; next }
  { for (left = $3 + 0; left > 0; left -= size[i]) ++i; if (left < 0) { print $2; exit 1 } }' "$t/layout" - > "$t/cut" ||
  fail 4 'a volume must hold whole chunks' "$where" '' "$(cat "$t/cut")" "$sender"
# Recovery data: chunks gathered into pieces, pieces dealt to groups, and for each group as many recovery chunks.
groups=$(sed -n 's/^groups //p' "$t/facts") parity=$(sed -n 's/^parity //p' "$t/facts")
grep '^recovery ' "$t/facts" > "$t/helpers"
if [ -n "$groups" ]; then
  gathered=$(awk -v chunk="$chunk_size" '{ if (NR == 1 || held + $1 > chunk + 0) { ++n; held = 0 }; held += $1; if (held > most) most = held }
    END { printf "%d %d", n, most }' "$t/layout")
  pieces=${gathered% *} piece=${gathered#* }
  if [ "$groups" -eq 0 ] || [ "$groups" -gt "$pieces" ] || [ "$parity" -eq 0 ] || [ "$parity" -gt 255 ] ||
    [ $(((pieces + groups - 1) / groups + parity)) -gt 255 ] || [ $((parity * piece)) -gt 134217728 ] ||
    [ $((groups * parity)) -gt 2097152 ]; then
    fail 4 'these are no groups of this payload' "$where" '' "$groups groups, parity $parity" "$sender"
  fi
  left=$((groups * parity))
  while read -r what own bytes; do
    if [ $((bytes % piece)) -ne 0 ] || [ "$bytes" -eq 0 ] || [ $((bytes / piece)) -gt $left ]; then
      fail 4 'a recovery file must hold whole recovery chunks' "$where" '' "$own" "$sender"
    fi
    left=$((left - bytes / piece))
  done < "$t/helpers"
  [ $left -eq 0 ] || fail 4 'recovery chunks are missing' "$where" '' "$left" "$sender"
fi
algorithm=$(value payload.digest "$t/manifest") list_digest=$(value payload.chunk_list_digest "$t/manifest")
stem=$name-$version

# --- 9. Acceptance: floors of the root, and time where the root is strict.
lowest=$(awk -v c="$channel" -v n="$name" '$1 == "floor" && $2 "" == c "" && $3 "" == n "" { print $4 }' "$t/previous")
[ "$version" -ge "${lowest:-0}" ] ||
  fail 14 "the bundle is below the root's floor" "$where" "version $lowest or newer" "version $version" 'ask for a newer one'
created=$(value created "$t/manifest") now=$(date -u +%Y-%m-%dT%H:%M:%SZ)
for other in "$created" "$floor_time"; do expr "$other" '>' "$now" > /dev/null && now=$other; done
if expr "$now" '>' "$expires" > /dev/null; then
  [ "$strict" = false ] || fail 16 'the root has expired, and it says that this is an error' "$seal" "valid at $now" "$expires"
  note "the root expired on $expires; ask its owner for the next one"
fi

# --- 10. The folder: the seal's own name, no file that the bundle does not have, each volume of its size.
[ "${seal##*/}" = "$stem.seal" ] || fail 10 'the seal is not named as the bundle it seals' "$seal" "$stem.seal"
is_volume() { case $1 in *[!A-Za-z0-9._-]*) return 1 ;; esac; grep '^volume ' "$t/facts" | grep -Fq "volume $1 "; }
is_helper() { case $1 in *[!A-Za-z0-9._-]*) return 1 ;; esac; grep -Fq "recovery $1 " "$t/helpers"; }
: > "$t/extra"
for file in "$folder"/* "$folder"/.*; do
  own=${file##*/}
  case $own in ._*) continue ;; *.vol* | *.chunks | *.rec*) ;; *) continue ;; esac
  case ${own##*.} in vol* | chunks | rec*) ;; *) continue ;; esac
  [ -e "$file" ] || [ -L "$file" ] || continue  # the pattern itself
  [ "$own" != "$stem.chunks" ] || continue
  is_volume "$own" && continue
  [ -n "$groups" ] && { [ "$own" = "$stem.recovery" ] || is_helper "$own"; } && continue
  cat "$t/facts" "$t/helpers" | sed -n -e 's/^volume \([^ ]*\) .*/\1/p' -e 's/^recovery \([^ ]*\) .*/\1/p' > "$t/own"
  echo "$stem.chunks" >> "$t/own"
  copy=''
  while read -r wanted; do
    if [ -e "$folder/$wanted" ]; then
      [ "$(original_of "$own")" != "$wanted" ] || copy=" (a second copy of $wanted)"
    elif [ -n "$(changed_from "$own" "$wanted")" ]; then
      plain_file "$folder/$wanted" 'a volume'
    fi
  done < "$t/own"
  printf '%s' "$own$copy" | tr -c ' -~' '?' >> "$t/extra"
  echo >> "$t/extra"
done
if [ -s "$t/extra" ]; then
  [ "$(wc -l < "$t/extra")" -le 20 ] || { sed 20q "$t/extra"; echo 'and more'; } > "$t/told"
  [ "$(wc -l < "$t/extra")" -le 20 ] || mv "$t/told" "$t/extra"
  fail 10 'the folder holds files that the bundle does not have' "$folder" '' \
    "$(sed -e ':a' -e '$!N' -e 's/\n/, /' -e ta "$t/extra")" 'move them away; keep bundles one to a folder'
fi
digest() { if [ "$algorithm" = sm3 ]; then openssl dgst -r -sm3; else sha256sum; fi | sed 's/ .*//'; }
printf '' | digest 2> /dev/null | grep -Eqx "$hex" || fail 11 'this openssl does not have the digest of the chunks' '' "$algorithm"
list=$folder/$stem.chunks
plain_file "$list" 'the chunk list'
[ "$(size_of "$list")" -eq $((32 * chunks)) ] ||
  fail 5 'the chunk list has the wrong length' "$list" "$((32 * chunks)) bytes" "$(size_of "$list") bytes" "$again"
dd if="$list" of="$t/list" bs=1048576 count=65 2> /dev/null || fail 3 'the chunk list cannot be read' "$list"
[ "$(digest < "$t/list")" = "$list_digest" ] ||
  fail 5 'the chunk list differs from what was signed' "$list" "$algorithm $list_digest" "" "$again"
[ -z "$only" ] || is_volume "${only##*/}" || is_helper "${only##*/}" ||
  fail 10 'the bundle has no volume of this name' "$only" "a volume of $stem" '' "name the folder of this volume's bundle"
place_of() { if [ -n "$only" ]; then echo "$only"; else echo "$folder/$1"; fi; }
length_fault=''  # of a volume alone, whose chunks are looked at all the same
while read -r what own bytes sha; do
  [ "$what" = volume ] || continue
  [ -z "$only" ] || [ "$own" = "${only##*/}" ] || continue
  file=$(place_of "$own")
  plain_file "$file" 'a volume'
  got="$(size_of "$file") bytes"
  [ "$got" != "$bytes bytes" ] || continue
  length_fault="$got instead of $bytes"
  [ -n "$only" ] || fail 5 'a volume is cut short or too long' "$file" "$bytes bytes" "$got" "$again"
done < "$t/facts"
# A site may leave recovery files out. What is there is looked at.
: > "$t/help"
while read -r what own bytes; do
  file=$(place_of "$own") here=1
  if [ -n "$only" ]; then
    [ "$own" = "${only##*/}" ] || here=0
  else
    [ -e "$file" ] || [ -L "$file" ] || here=0
  fi
  echo "$own $bytes $here" >> "$t/help"
  [ $here = 1 ] || continue
  plain_file "$file" 'a recovery file'
  [ "$(size_of "$file")" -ne "$bytes" ] || continue
  length_fault="$(size_of "$file") bytes instead of $bytes"
  [ -n "$only" ] || fail 5 'a recovery file is cut short or too long' "$file" "$bytes bytes" "$length_fault" "$again"
done < "$t/helpers"
if grep -q ' 1$' "$t/help"; then
  list=$folder/$stem.recovery
  plain_file "$list" 'the list of recovery chunks'
  [ "$(size_of "$list")" -eq $((32 * groups * parity)) ] ||
    fail 5 'the list of recovery chunks has the wrong length' "$list" "$((32 * groups * parity)) bytes" '' "$again"
  dd if="$list" of="$t/rest" bs=1048576 count=65 2> /dev/null || fail 3 'the list of recovery chunks cannot be read' "$list"
  [ "$(digest < "$t/rest")" = "$(value payload.recovery.list_digest "$t/manifest")" ] ||
    fail 5 'the list of recovery chunks differs from what was signed' "$list" '' '' "$again"
  cat "$t/rest" >> "$t/list"
elif [ -n "$groups" ] && [ -z "$only" ]; then
  note 'recovery data was left out, which is no fault'
fi
while read -r what own bytes sha; do
  [ "$what" = companion ] || continue
  [ -e "$folder/$own" ] || [ -L "$folder/$own" ] || { note "$own was left out, which is no fault"; continue; }
  plain_file "$folder/$own" 'a program'
  if [ "$(size_of "$folder/$own")" -ne "$bytes" ] || [ "$(sha256_of "$folder/$own")" != "$sha" ]; then
    fail 5 'a program beside the bundle differs from what was signed' "$folder/$own" "sha256 $sha" '' 'do not run it'
  fi
done < "$t/facts"

# --- 11. Every chunk of every volume, by as many workers as there are processors. Worker W of N takes each Nth chunk, so
# that together they read a disc nearly in order. openssl is quicker than sha256sum where the processor helps it.
workers=$(nproc 2> /dev/null || getconf _NPROCESSORS_ONLN 2> /dev/null)
case $workers in [1-9] | [1-9][0-9]) ;; *) workers=1 ;; esac
[ "$workers" -le 16 ] || workers=16
fast() { openssl dgst -r -sha256; }
[ "$(printf '' | fast 2> /dev/null | sed 's/ .*//')" = "$(printf '' | sha256sum | sed 's/ .*//')" ] || fast() { sha256sum; }
[ "$algorithm" != sm3 ] || fast() { openssl dgst -r -sm3; }
grep '^volume ' "$t/facts" | awk 'FNR == NR { size[FNR] = $1; next }  # VOLUME OFFSET SIZE OFFSET_IN_PAYLOAD NUMBER of each chunk
  { for (at = 0; at < $3 + 0; at += size[i]) { ++i; printf "%s %.0f %s %.0f %d\n", $2, at, size[i], from + at, i } from += $3 }
  ' "$t/layout" - > "$t/all"
awk -v piece="${piece-1}" -v from="$size" -v n="$chunks" '{ for (at = 0; at < $2 + 0; at += piece) { ++n
  if ($3) printf "%s %.0f %s %.0f %d\n", $1, at, piece, from + at, n } from += $2 }' "$t/help" >> "$t/all"
cat "$t/all" | if [ -n "$only" ]; then grep -F "${only##*/} "; else cat; fi > "$t/places"
work() {  # W
  n=0
  while read -r own at bytes from number; do
    n=$((n + 1))
    [ $((n % workers)) -eq "$1" ] || continue
    line=$({  # the first two only move the place from which the third reads
      [ "$at" -lt 512 ] || dd bs=512 skip=$((at / 512)) count=0
      [ $((at % 512)) -eq 0 ] || dd bs=1 skip=$((at % 512)) count=0
      dd bs="$bytes" count=1
    } < "$(place_of "$own")" 2> /dev/null | fast)
    echo "$number ${line%% *} $own $at $from $bytes"
  done < "$t/places" > "$t/got.$1"
}
w=0
while [ $w -lt "$workers" ]; do
  work $w &
  w=$((w + 1))
done
wait
cat "$t"/got.* | sort -n > "$t/got"
od -An -v -tx1 "$t/list" | tr -d ' ' | awk 'NR % 2 { half = $0; next } { print half $0 }' > "$t/expected"
awk 'FNR == NR { want[FNR] = $1; next }
  $2 "" != want[$1] "" { print $3, $4, $5, $6 }
  END { if (FNR != '"$(($(wc -l < "$t/places")))"') print "their-number" }' "$t/expected" "$t/got" > "$t/wrong"
# Which entries have bytes in a chunk: both lists are in payload order.
grep '^range ' "$t/facts" | sort -k2,2n | awk '
  entries && $3 + 0 { begin[++n] = $2 + 0; end[n] = $2 + $3; sub(/^range [^ ]* [^ ]* [^ ]* /, ""); path[n] = $0 }
  !entries && NF == 1 { print "their number" }
  !entries && NF > 1 {
    for (; at < n && end[at + 1] <= $3 + 0; ++at) {}
    print $1 " at offset " $2 ", " $4 " bytes"
    for (i = at + 1; i <= n && begin[i] < $3 + $4; ++i) print "  of " path[i]
  }' entries=1 - entries=0 "$t/wrong" > "$t/told"
if [ -s "$t/wrong" ]; then
  while IFS= read -r line; do say '  differs:  ' "$line"; done < "$t/told"
  [ -z "$length_fault" ] || say '  differs:  ' "$only has $length_fault"
  fail 5 "$(($(wc -l < "$t/wrong"))) of $(($(wc -l < "$t/places"))) chunks differ from what was signed" \
    "${only:-$folder}" '' '' "$again"
fi
[ -z "$length_fault" ] || fail 5 'a volume is too long' "$only" '' "$length_fault" "$again"

# --- 12. The verdict.
[ -z "$only" ] || note "only ${only##*/} was looked at; the other volumes may be good or bad"
[ -z "$skipped" ] || fail 11 'all that could be checked holds, but this openssl lacks a kind of signature' "$seal" \
  "$skipped" "$(openssl version)" "$elsewhere"
[ "$profile" != fips ] || note 'the root asks for FIPS: whether your openssl is a validated module is for you to know'
[ -z "$(value base "$t/manifest")" ] ||
  note 'it is a delta: what it does not carry is in the store of its target, where sealift-install looks for it'
note 'what this site has accepted before (rollback) is known to sealift-install only; a downgrade is not noticed here'
[ -z "$only" ] || { chunks=$(($(wc -l < "$t/places"))) size=$(size_of "$only") stem="${only##*/} of $stem"; }
echo "good: $stem, channel $channel, $chunks chunks, $size bytes, identity sha256:$identity, judged by root $previous"
