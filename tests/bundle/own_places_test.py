#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# The list in include/sealift/bundle/core/own_places.hpp names all that our programs and pages name below a generation:
# each text in the sources that is a path of ours, and each PREFIX/current/NAME of a page. A new name that Sealift reads
# is added there, or this fails.
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HEADER = ROOT / "include/sealift/bundle/core/own_places.hpp"
SOURCES = ("bundle", "include", "packager", "installer", "offline_repo", "trainer", "verify", "launch")
# Of what pages name: the interpreter's and wheels' programs, which have owners of their own.
OTHERS = re.compile(r"bin(/(python[\d.]*|pip|torchrun|hello|activate))?|lib(/python.*)?|bin/\*")
LITERAL = re.compile(r'"((?:share|bin|libexec|lib|include|lib64)/[^"\s]*sealift[^"]*|(?:apt|rpm|models|data|hub|modelscope)/)"')
PAGE = re.compile(r"(?:PREFIX|/opt/env|\$P|prefix)/current/([A-Za-z0-9_.*/-]*[A-Za-z0-9_*])")

PLACES = re.findall(r'^\s*\{"([^"]+)",', HEADER.read_text(), re.M)


def is_own(path):
    return any(path.startswith(place[:-1]) if place.endswith("*") else path == place or path.startswith(place + "/")
               for place in PLACES)


def main():
    faults, literals, pages = [], 0, 0
    for folder in SOURCES:
        for file in sorted((ROOT / folder).rglob("*")):
            if file.suffix not in (".cpp", ".hpp", ".sh", ".py") or file == HEADER:
                continue
            for path in LITERAL.findall(file.read_text(errors="replace")):
                literals += 1
                if not is_own(path.rstrip("/")):
                    faults.append(f"{file.relative_to(ROOT)}: {path} is in no list of own places")
    for file in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("include/**/*.md"),
                        *ROOT.glob("packager/**/*.cpp"), *ROOT.glob("offline_repo/**/*.cpp")]):
        for path in PAGE.findall(file.read_text(errors="replace")):
            pages += 1
            if not is_own(path) and not OTHERS.fullmatch(path):
                faults.append(f"{file.relative_to(ROOT)}: PREFIX/current/{path} is in no list of own places")
    if len(PLACES) < 10 or literals < 15 or pages < 10:
        faults.append(f"too little was found to mean anything: {len(PLACES)}, {literals}, {pages}")
    print("\n".join(faults) or f"{len(PLACES)} places, {literals} texts in sources, {pages} in pages")
    return 1 if faults else 0


sys.exit(main())
