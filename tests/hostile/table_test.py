#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# tests/HOSTILE.md must say the truth: every row is there, rows of the corpus have cases, tests that it names exist.
#   table_test.py MAKE_CORPUS
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
EXPECTED = ([f"M{i:02}" for i in range(1, 32)] + [f"S{i:02}" for i in range(1, 25)] + [f"V{i:02}" for i in range(1, 18)]
            + [f"A{i:02}" for i in range(1, 14)] + [f"W{i:02}" for i in range(1, 24)]
            + [f"F{i:02}" for i in range(1, 12)] + [f"E{i:02}" for i in range(1, 10)] + [f"C{i:02}" for i in range(1, 6)]
            + [f"K{i:02}" for i in range(1, 6)] + [f"G{i:02}" for i in range(1, 10)] + [f"B{i:02}" for i in range(1, 37)]
            + [f"P{i:02}" for i in range(1, 20)] + [f"R{i:02}" for i in range(1, 8)]
            + [f"L{i:02}" for i in range(1, 5)] + [f"O{i:02}" for i in range(1, 18)] + [f"Y{i:02}" for i in range(1, 9)]
            + [f"U{i:02}" for i in range(1, 20)] + [f"H{i:02}" for i in range(1, 7)]
            + [f"X{i:02}" for i in range(1, 13)]
            + [f"T{i:02}" for i in range(1, 5)] + [f"J{i:02}" for i in range(1, 3)]
            + [f"N{i:02}" for i in range(1, 9)] + [f"D{i:02}" for i in range(1, 6)] + [f"Q{i:02}" for i in range(1, 7)])


def faults_of_promises(rows):
    """Each promise of SECURITY.md says whom it keeps out, and by which rows or test that is shown."""
    faults = []
    security = (ROOT / "SECURITY.md").read_text()
    promises = security.partition("## What is promised\n")[2].partition("\n## ")[0]
    for promise in re.split(r"\n- ", promises)[1:]:
        shown = re.findall(r"\*[^*:]+:\s+([^*]+)\*", promise)
        if not any(re.search(r"\b[A-Z]\d\d\b|\]\(tests/", one) for one in shown):
            faults.append("SECURITY.md: nothing shows this promise: " + promise[:70].replace("\n", " "))
    for row in set(re.findall(r"\b([A-Z]\d\d)\b", security)) - rows:
        faults.append(f"SECURITY.md names {row}, which is not in the table")
    return faults


def main():
    generated = set(subprocess.run([sys.argv[1], "--rows"], capture_output=True, check=True, text=True).stdout.split())
    faults, seen = [], []
    for line in (ROOT / "tests/HOSTILE.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not re.fullmatch(r"[A-Z]\d\d", cells[0]):
            continue
        row, where = cells[0], cells[-1]
        seen.append(row)
        if where == "corpus":
            if row not in generated:
                faults.append(f"{row}: no generator makes it")
        elif where.startswith("tests/"):
            for one in re.split(r"; (?=tests/)", where):
                file, _, words = one.partition(": ")
                if not (ROOT / file).is_file() or words not in (ROOT / file).read_text():
                    faults.append(f"{row}: {file} does not say '{words}'")
        elif where != "moot" and not where.startswith("later: "):
            faults.append(f"{row}: '{where}' says nothing")
    if sorted(seen) != sorted(EXPECTED):
        faults.append(f"rows missing or too many: {sorted(set(seen) ^ set(EXPECTED))}")
    faults += faults_of_promises(set(seen))
    faults += [f"{row}: generated, but not in the table" for row in sorted(generated - set(seen))]
    print("\n".join(faults) or f"{len(seen)} rows, {len(generated)} of them generated")
    return 1 if faults else 0


sys.exit(main())
