#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Checks every page: each relative link leads to a file of the repository and to a heading of it, no line is wider than
# 120 columns (table rows excepted), and the pages that people meet first are short. Prints each fault; exit status 1.
# Links to other hosts are not followed.
#   links.py [ROOT]
import pathlib
import re
import sys
import unicodedata

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent).resolve()
FENCE = re.compile(r"^```.*?^```", re.M | re.S)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def anchors(page):
    """The anchors of a page's headings, as repository hosts make them."""
    slugs = []
    for heading in re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text()), re.M):
        text = re.sub(r"\]\([^)]*\)", "]", heading).strip().lower()
        slug = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        slugs.append(slug if slug not in slugs else f"{slug}-{slugs.count(slug)}")
    return slugs


# Page -> most lines. A folder's page is a map of its rooms.
LONGEST = {"README.md": 150, "README_zh.md": 160} | {
    f"{folder}/README.md": 60 for folder in ("bundle", "packager", "installer", "offline_repo", "include/sealift/train", "trainer",
                                                   "verify", "launch", "samples")}


def columns(line):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


def faults_of(page):
    name, text = page.relative_to(ROOT), page.read_text()
    if (lines := len(text.splitlines())) > LONGEST.get(str(name), lines):
        yield f"{name}: {lines} lines, {LONGEST[str(name)]} are enough for this page"
    for number, line in enumerate(text.splitlines(), 1):
        if columns(line) > 120 and not line.startswith("|"):
            yield f"{name}:{number}: {columns(line)} columns"
    for link in LINK.findall(re.sub(r"`[^`\n]*`", "", FENCE.sub("", text))):
        path, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", link):
            continue
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or not target.is_relative_to(ROOT):
            yield f"{name}: {link} leads nowhere"
        elif anchor and anchor not in anchors(target):
            yield f"{name}: {link}: no such heading"


pages = [p for p in sorted(ROOT.rglob("*.md")) if p.relative_to(ROOT).parts[0] not in ("build", ".git", "third_party")]
faults = [fault for page in pages for fault in faults_of(page)]
print("\n".join(faults) or f"links: {len(pages)} pages, all links lead somewhere")
sys.exit(1 if faults else 0)
