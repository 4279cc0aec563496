#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# report.json of a stranger, as `sealift-verify diff` reads it: a real one with parts replaced, doubled, nested, cut and
# with names that type into a terminal. Each is refused with 2, or compared; none ends by a signal, takes long, or has
# a control character of its own reach the terminal or the page.
#   foreign_report_test.py BIN [TRIES [SEED]]
import json
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

PROGRAM = pathlib.Path(sys.argv[1]).resolve() / "sealift-verify"
TRIES = int(sys.argv[2]) if len(sys.argv) > 2 else 60
random.seed(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
if not PROGRAM.exists():
    print("skipped: sealift-verify is not built here")
    sys.exit(77)
NASTY = ["", "\x1b]0;owned\x07", "\x9b31m", "\u202eexe", "<script>alert(1)</script>", "a\nGOOD: forged", "x" * 100_000, -1,
         1 << 70, 1.5, 1e308, None, True, [], {}, [[]], "PASS", "FAIL", "2026-13-45T99:99:99Z"]
BAD = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x80-\x9f\u202a-\u202e\u2066-\u2069]")
failures = []
tries = 0


def places(value, path=()):
    yield path
    if isinstance(value, (dict, list)):
        for key in (value if isinstance(value, dict) else range(len(value))):
            yield from places(value[key], (*path, key))


def with_change(report):
    changed = json.loads(json.dumps(report))
    for _ in range(random.choice((1, 1, 3))):
        path = random.choice([path for path in places(changed) if path])
        parent = changed
        for key in path[:-1]:
            parent = parent[key]
        what = random.random()
        if what < 0.7:
            parent[path[-1]] = random.choice(NASTY)
        elif what < 0.85:
            del parent[path[-1]]
        elif isinstance(parent, dict):
            parent[random.choice([str(word) for word in NASTY])] = parent[path[-1]]
        else:
            parent.extend(parent[:] * 50)
    return json.dumps(changed, ensure_ascii=False)


def judge(what, text):
    global tries
    tries += 1
    (work / "B/report.json").write_bytes(text if isinstance(text, bytes) else text.encode(errors="surrogatepass"))
    page = work / "page.html"
    page.unlink(missing_ok=True)
    try:
        done = subprocess.run([PROGRAM, "diff", work / "A", work / "B", "--html", page], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=20)
    except subprocess.TimeoutExpired:
        failures.append(what)
        return print("FAILED: takes long:", what)
    said = (done.stdout + done.stderr).decode(errors="replace")
    shown = page.read_text(errors="replace") if page.exists() else ""
    wrong = (done.returncode not in (0, 1, 2, 11) or "\nGOOD: forged" in said or BAD.search(said) or BAD.search(shown)
             or "<script>alert" in shown)
    if wrong:
        failures.append(what)
        found = BAD.search(said) or BAD.search(shown)
        print("FAILED:", what[:300], done.returncode, repr(found.group()) if found else "", said[:300])


work = pathlib.Path(tempfile.mkdtemp(prefix="sealift-report-"))
try:
    (work / "B").mkdir()
    done = subprocess.run([PROGRAM, "run", "--level", "quick", "--only", "machine.host", "--out", work / "A"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    assert (work / "A/report.json").exists(), done.stdout
    good = (work / "A/report.json").read_text()
    report = json.loads(good)
    judge("the same", good)
    for what, text in (("empty", ""), ("no object", "[]"), ("cut", good[:len(good) // 2]), ("bytes behind", good + "{}"),
                       ("a key twice", good.replace('"format": 1,', '"format": 1, "format": 1,', 1)),
                       ("deep", "[" * 200_000), ("no UTF-8", b'{"format": 1, "site": "\xff\xfe"}'),
                       ("a BOM", "\ufeff" + good), ("a million keys", json.dumps({str(i): i for i in range(1_000_000)})),
                       ("another format", good.replace('"format": 1', '"format": 99', 1))):
        judge(what, text)
    for _ in range(TRIES):
        text = with_change(report)
        judge(text, text)
    (work / "B/report.json").unlink()
    (work / "B/report.json").symlink_to("/dev/zero")  # without an end
    tries += 1
    try:
        code = subprocess.run([PROGRAM, "diff", work / "A", work / "B"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=20).returncode
    except subprocess.TimeoutExpired:
        code = "no end"
    if code in (0, "no end") or code < 0:
        failures.append("a report without an end")
        print("FAILED: a report without an end", code)
finally:
    shutil.rmtree(work)
print(f"{tries} tries, {len(failures)} failed")
sys.exit(1 if failures else 0)
