#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copies ctest's output, and puts a table of minutes before its summary: what each step took, and the tests of each subject.
# Last in tests/run.sh, whose output ends with ctest's own words.
# Tests run side by side, so their minutes add up to more than the clock's; tests/README.md has the table to compare with.
#   ctest ... |& minutes.py STEPS       STEPS: a line each, name TAB seconds; the exit status is ctest's
import re
import shutil
import subprocess
import sys

# The first that matches decides.
SUBJECTS = (
    ("the whole story", r"end_to_end|air_gap|samples\.first_bundle"),
    ("installer", r"installer|audit_agrees"),
    ("packager", r"packager|security_drill"),
    ("offline_repo", r"offline_repo"),
    ("many machines, launch", r"many_machines|launch_any|multi_host"),
    ("verify", r"verify"),
    ("engine, against PyTorch", r"train\.(oracle|compression_oracle|export_python|consumer|installed)|samples"),
    ("trainer, against transformers", r"train\."),
    ("bundle", r"bundle|format_by_hand|hostile|other_archivers|safetensors"),
    ("the repository itself", r"arrows|links|format|left_out"),
    ("engine and trainer", r""),
)
RESULT = re.compile(r"^ *\d+/\d+ Test +#\d+: (\S+) \.*.*?([\d.]+) sec")
SUMMARY = re.compile(r"^(\d+% tests passed|No tests were found)")


def table(steps, tests):
    rows = [(name, float(seconds) / 60, "") for name, seconds in steps]
    for subject, _ in SUBJECTS:
        of_it = [seconds for name, seconds in tests if next(s for s, p in SUBJECTS if re.match(p, name)) == subject]
        if of_it:
            rows.append((f"tests: {subject}", sum(of_it) / 60, f"{len(of_it)} tests, longest {max(of_it):.0f} s"))
    return "".join(f"{name:<40}{minutes:6.1f}  {more}".rstrip() + "\n" for name, minutes, more in rows)


def cache():
    """How much ccache had, where there is one."""
    if not shutil.which("ccache"):
        return "no compiler cache: ccache is not here\n"
    shown = subprocess.run(["ccache", "--show-stats"], capture_output=True, text=True).stdout
    hits = re.search(r"Hits: +(\d+) */ *(\d+)", shown)
    return f"compiler cache: {hits[1]} of {hits[2]} compilations were there\n" if hits else "compiler cache: not asked\n"


def main(steps_file):
    tests, held = [], ""
    for line in sys.stdin:
        if found := RESULT.match(line):
            tests.append((found[1], float(found[2])))
        if held or SUMMARY.match(line):
            held += line
        else:
            sys.stdout.write(line)
            sys.stdout.flush()
    with open(steps_file, encoding="utf-8") as file:
        steps = [line.rstrip("\n").split("\t") for line in file]
    sys.stdout.write(f"\n==> minutes\n{table(steps, tests)}{cache()}\n{held}")


main(sys.argv[1])
