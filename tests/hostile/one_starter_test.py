#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Programs are started in one place, which closes descriptors, leaves the login's keyring and says what a child gets
# (bundle/host/start_process.cpp), and by sealift-start, which becomes the program that it was asked for. Another fork,
# exec, system or popen in our sources fails here, before a child inherits what nobody has thought of. sealift-verify's
# keeper forks at its beginning and starts no program: the child goes on as the same one; so does the server of a mount
# that goes on in the background.
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SOURCES = ("bundle", "include", "packager", "installer", "offline_repo", "trainer", "verify", "launch")
STARTERS = {"bundle/host/start_process.cpp": {"fork", "execve", "execvp"}, "installer/start/start.cpp": {"execv"},
            "verify/verbs/end_of_run.cpp": {"fork"}, "installer/mount/background.cpp": {"fork"}}
STARTS = re.compile(r"(?<![\w.>:\"])(?:::|std::)?(fork|vfork|_Fork|exec[lv]p?e?|execveat|fexecve|posix_spawnp?|popen|system|"
                    r"clone3|daemon|forkpty)\s*\(")
# A word of ours, of Python's or of a comment is no call.
OTHER = re.compile(r"//.*|R\"(\w*)\((?:.|\n)*?\)\1\"|\"(?:[^\"\\\n]|\\.)*\"")
CALLS = re.compile(r"SYS_(execve|execveat|clone3?|fork|vfork)\b")


def main():
    found, looked = {}, 0
    for file in sorted(file for folder in SOURCES for file in (ROOT / folder).rglob("*.?pp")):
        text = OTHER.sub(lambda whole: "\n" * whole.group().count("\n") + '""', file.read_text())
        looked += 1
        for number, line in enumerate(text.splitlines(), 1):
            for name in STARTS.findall(line) + CALLS.findall(line):
                # A declaration names a type before it; a method of ours is called by an object.
                if re.search(rf"\b(?:\w+|>)\s+(?:\w+::)?{name}\s*\(", line) and not re.search(rf"(return|=|\(|;|{{|\))\s*(::|std::)?{name}\s*\(", line):
                    continue
                found.setdefault(str(file.relative_to(ROOT)), {}).setdefault(name, number)
    faults = [f"{file}:{number}: {name}: programs are started by bundle/host/start_process.hpp"
              for file, names in found.items() for name, number in names.items() if name not in STARTERS.get(file, ())]
    faults += [f"{file}: {name} is not found, so this test sees nothing"
               for file, names in STARTERS.items() for name in names if name not in found.get(file, {})]
    print("\n".join(faults) or f"{looked} sources; programs are started in {len(found)}")
    return 1 if faults or looked < 1000 else 0


sys.exit(main())
