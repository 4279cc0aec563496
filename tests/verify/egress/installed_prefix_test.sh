#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A library that phones home in a prefix that was really installed: the finding has its Python stack, though the carried
# Python drops PYTHONPATH, by which a stack is noted elsewhere. A bundle of the Python alone is packed and applied.
# And a thread that acts seconds after the import.
#   installed_prefix_test.sh SEALIFT_VERIFY SEALIFT_PACK SEALIFT_INSTALL SEALIFT_START UV
set -eu
verify=$1 pack=$2 install=$3 start=$4
export PATH="${5%/*}:$PATH"
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
cd "$work"
cat >job.toml <<END
name = "stack"
version = 1
channel = "tests"
[target]
arch = "x86_64"
glibc = "$(getconf GNU_LIBC_VERSION | sed 's/^glibc //')"
[python]
version = "3.11"
requirements = ["six==1.17.0"]
imports = ["six"]
END
fingerprint=$("$pack" keygen keys)
"$pack" lock job.toml --launcher "$start" -o job.lock.toml
"$pack" create job.lock.toml --root keys/root.1.json --key keys/release.key -o .
"$install" apply stack-1 --prefix "$work/prefix" --fingerprint "$fingerprint"

packages=$(echo prefix/current/lib/python3.*/site-packages)
cat >"$packages/telemetry.py" <<'END'
import socket


def report():
    try:
        socket.create_connection(("203.0.113.5", 443), 1)
    except OSError:
        pass


report()
END
printf '[egress]\nimports = ["telemetry"]\n' >site.toml
# A plain start, and one from an activated prefix, whose Python hands a PYTHONPATH of its own on.
for how in plain activated; do
  code=0
  (
    [ $how = plain ] || . prefix/activate
    exec "$verify" run --device cpu --prefix "$work/prefix/current" --site site.toml --only egress.imports --out $how
  ) >$how.txt 2>&1 || code=$?
  [ $code = 1 ] || { cat $how.txt; echo "exit code $code in place of 1"; exit 1; }
  python3 - $how <<'PYTHON'
import json, sys
check = {each["name"]: each for each in json.load(open(sys.argv[1] + "/report.json"))["checks"]}["egress.imports"]
assert check["outcome"] == "FAIL" and "203.0.113.5:443" in check["reason"]["en"], check["reason"]
stacks = [fact["value"] for fact in check["facts"] if fact["name"] == "Python stack"]
assert stacks, ("no Python stack", check["facts"])
for line in ("telemetry.py:6 in report", "telemetry.py:11 in <module>"):
    assert line in stacks[0], stacks
for page in ("report.txt", "report.html", "report.zh.txt", "report.zh.html"):
    assert "telemetry.py:6 in report" in open(f"{sys.argv[1]}/{page}").read(), page
PYTHON
  echo "$how: the stack is on each page"
done

# A thread that does it seconds later, and that no program waits for at its end.
cat >"$packages/late.py" <<'PYTHON'
import socket
import threading
import time


def report():
    time.sleep(3)
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"late", ("203.0.113.6", 443))


threading.Thread(target=report, daemon=True).start()
PYTHON
printf '[egress]\nimports = ["late"]\n' >site.toml
code=0
"$verify" run --device cpu --prefix "$work/prefix/current" --site site.toml --only egress.imports --out late \
  >late.txt 2>&1 || code=$?
[ $code = 1 ] || { cat late.txt; echo "exit code $code in place of 1: a late thread"; exit 1; }
grep -q '203.0.113.6:443' late/report.txt || { cat late/report.txt; exit 1; }
echo "late: what a thread does seconds later is seen"
