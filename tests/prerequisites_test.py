#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# What cmake/prerequisites.sh takes from an index is pinned by hash: each version that it names stands in a file of
# cmake/hashes with one, and no command of it fetches without them.
#   prerequisites_test.py
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
script = (ROOT / "cmake/prerequisites.sh").read_text()
faults = []
pinned = {}
for path in sorted((ROOT / "cmake/hashes").glob("*.txt")):
    name = path.stem
    for requirement in re.split(r"\n(?=\S)", path.read_text()):
        if requirement.startswith("#") or not requirement.strip():
            continue
        match = re.match(r"([\w.-]+)(?:\[[^]]*\])?==([^ ;\\]+)", requirement)
        if not match or not re.search(r"--hash=sha256:[0-9a-f]{64}\b", requirement):
            faults.append(f"{path.name}: no version with a hash: {requirement[:80]!r}")
        else:
            pinned.setdefault(name, set()).add((match[1].lower().replace("_", "-"), match[2]))
    if not re.search(rf"by_hash \S+ {name}\b|hashes/{name}\.txt", script) and f"{name.rpartition('-')[0]}=={name.rpartition('-')[2]}" not in script:
        faults.append(f"{path.name}: cmake/prerequisites.sh does not install it")
wanted = re.findall(r"^k[A-Z]\w*=.*$", script, re.M) + (ROOT / "tests/train/peers.txt").read_text().splitlines()
everywhere = set().union(*pinned.values())
for line in wanted:
    for name, version in re.findall(r"([A-Za-z][\w.-]*)(?:\[[^]]*\])?==([\w.+]+)", line):
        if name != "isal" and (name.lower().replace("_", "-"), version) not in everywhere:
            faults.append(f"{name}=={version} is in no file of cmake/hashes: run cmake/hashes/make.sh")
if not re.search(r"^kIsalHash=sha256:[0-9a-f]{64}$", script, re.M):
    faults.append("isal has no hash")
for command in re.findall(r"[^\n]*(?:\\\n[^\n]*)*", script):
    if re.search(r"\bpip\W+(install|download)\b", command) and not command.lstrip().startswith("#") and "--require-hashes" not in command:
        faults.append("fetches without hashes: " + command.strip())
print("\n".join(faults) or f"{len(everywhere)} versions in {len(pinned)} files")
sys.exit(1 if faults else 0)
