#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `diff`, `sign` and `check-signature` by hand: their exit codes, and the commands that `sign` prints, run as printed.
#   verbs_test.sh SEALIFT_VERIFY VERIFY_TESTS
# The report is the made one that verify_tests writes; a short real run shows that its Chinese pages are in Chinese.
set -eu
verify=$1
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

expect() {  # CODE COMMAND…
  wanted=$1
  shift
  code=0
  "$@" > out.txt 2> err.txt || code=$?
  [ "$code" = "$wanted" ] || { echo "exit code $code in place of $wanted: $*"; cat out.txt err.txt; exit 1; }
}
says() {
  grep -q -- "$1" out.txt err.txt || { echo "nothing says: $1"; cat out.txt err.txt; exit 1; }
}

SEALIFT_KEEP_PAGES=$folder/a "$2" -tc='a folder holds the report*' > tests.txt || { cat tests.txt; exit 1; }
cp -r a b
cp -r a gone
python3 - <<'PYTHON'
import json
report = json.load(open("b/report.json"))
report["checks"][1]["facts"][0]["value"] = "580.65.06"
report["checks"][2]["outcome"] = "FAIL"
json.dump(report, open("b/report.json", "w"))
report = json.load(open("a/report.json"))
report["checks"][2]["figures"].pop()
json.dump(report, open("gone/report.json", "w"))
PYTHON

expect 0 "$verify" diff a a/report.json
says "Nothing became worse"
expect 1 "$verify" diff a b --html diff.html --lang zh
says "有 1 项变差"
says "580.65.06"
grep -q '<html lang="zh-CN">' diff.html
expect 0 "$verify" diff b a --json
says '"turn": "better"'
expect 2 "$verify" diff a b --threshold 7
echo '{"format":1}' > bad.json
expect 2 "$verify" diff a bad.json
says "bad.json: JSON is not acceptable: the key 'verdict' is missing"

expect 0 "$verify" diff gone a --json
says '"before": null'

# A slip of the hand, in both programs that have such a command line.
train=$(dirname "$verify")/sealift-train
expect 2 "$verify" dif a b
says "there is no such verb: dif; expected check-signature, diff, golden, run, sign; did you mean: sealift-verify diff"
expect 2 "$verify" diff a b --treshold 1
says "there is no such option: --treshold; did you mean: sealift-verify diff --threshold"
expect 2 "$train" check-up
says "there is no such verb: check-up; expected "
says "; see: sealift-train --help"
expect 2 "$train" sft --lerning-rate=3
says "unknown key 'lerning_rate', did you mean learning_rate"
expect 2 "$train" plan --modle nowhere
says "there is no such option: --modle; did you mean: sealift-train plan --model"

# A file that may not grow, and a full disk: an error that says so, and no signal.
limited() { sh -c 'ulimit -f 1; exec "$@"' sh "$@"; }
expect 2 limited "$verify" diff b a --html limited.html
says "cannot write limited.html"
expect 2 limited "$verify" diff b a
says "what was printed cannot be written to standard output"
expect 2 sh -c '"$1" diff a a >/dev/full' sh "$verify"
says "what was printed cannot be written to standard output"
expect 2 limited "$verify" run --device cpu --only machine.host --out limited
says "limited/checks/room: File too large"

expect 2 env TMPDIR=/nowhere "$verify" run --only machine.clocks --out c
says "set TMPDIR to a folder where there is room"
expect 2 "$verify" run --only machine.clocks --out /proc/c
says "--out /proc/c: no report can be written there"

expect 2 "$verify" sign b
says "is not the page that report.json gives"
openssl genpkey -algorithm ed25519 -out SITE.key
openssl pkey -in SITE.key -pubout -out SITE.pub
expect 2 "$verify" check-signature a --public-key SITE.pub
expect 0 "$verify" sign a --public-key SITE.pub
says '^# verdict: "FAIL"'
grep -A3 '^# Ed25519' out.txt | grep -v '^#' > commands.sh
[ "$(wc -l < commands.sh)" = 3 ]
sh -e commands.sh > /dev/null
expect 0 "$verify" check-signature a --public-key SITE.pub
says "^GOOD: Ed25519 key"
echo >> a/report.txt
expect 1 "$verify" check-signature a --public-key SITE.pub
says "^BAD: report.txt is not the file that was signed"
openssl genpkey -algorithm ed25519 | openssl pkey -pubout -out OTHER.pub
expect 1 "$verify" check-signature a --public-key OTHER.pub
says "^BAD: the signature"

# Each check has a row of its fault.
expect 2 "$verify" run --device cpu --only nothing --prefix "$folder" --out none
grep -o -- '--only nothing leaves no check of: .*' err.txt | cut -d: -f2 | tr ', ' '\n\n' | grep . >checks.txt
# So it is of several ranks, before one of them starts: those of a launcher would wait for each other.
expect 2 "$verify" run --device cpu --only nothing --prefix "$folder" --out none --ranks 2
says "leaves no check of"
expect 2 env RANK=1 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=9 "$verify" run --device cpu --only nothing --out none
says "leaves no check of"
[ "$(wc -l <checks.txt)" -gt 20 ] || { echo "the program lists no checks"; cat err.txt; exit 1; }
while read -r check; do
  grep -E "^\| .*\`(${check%.*})?\.${check##*.}(\.NAME)?\`" "$here/../README.md" >row.txt ||
    { echo "tests/verify/README.md has no row for $check"; exit 1; }
done <checks.txt

# A processor whose kernels were chosen otherwise is another kind: it is held to what is stated, not to the bit.
mkdir -p golden/bin golden/share/sealift/golden
ln -s "$train" golden/bin/
printf 'name = "kind"\nverb = "run"\n[settings]\nsteps = 4\n' > golden.toml
expect 0 env ATEN_CPU_CAPABILITY=default "$verify" golden golden.toml --prefix golden --out golden/share/sealift/golden/kind.json
for kernels in default avx2; do
  expect 0 env ATEN_CPU_CAPABILITY=$kernels "$verify" run --device cpu --prefix golden --only training.golden --out kind.$kernels
done
grep -q 'held to: the bit' kind.default/report.txt || { cat kind.default/report.txt; exit 1; }
grep -q 'held to: the stated tolerance' kind.avx2/report.txt || { cat kind.avx2/report.txt; exit 1; }

# In a network of its own where that can be; what it finds of this machine is no matter here.
mkdir -p prefix/bin
ln -s "$(dirname "$verify")/sealift-train" prefix/bin/
"$verify" run --device cpu --ranks 2 --prefix "$PWD/prefix" --own-network --only machine.host --only arithmetic.same_bits \
  --only communication.right --only egress.run --out real > out.txt 2> err.txt || true
[ -f real/report.json ] || "$verify" run --device cpu --ranks 2 --prefix "$PWD/prefix" --only machine.host \
  --only arithmetic.same_bits --only communication.right --only egress.run --out real > out.txt 2>> err.txt || true
[ -f real/report.json ] || { echo "no report"; cat out.txt err.txt; exit 1; }
python3 "$here/../pages/chinese_pages.py" real
echo "verbs_test: good"
