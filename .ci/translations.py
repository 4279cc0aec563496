#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Chinese pages stay in step with the English ones: as many headings of each level in one order, as many tables with as
# many rows, in each row the same `code` and the same rows of tests/HOSTILE.md, and the same commands in the same order.
# Both pages link to each other, and a Chinese page to Chinese ones. Words are read by people (CONTRIBUTING.md, "Translations").
#   .ci/translations.py
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAMS = re.compile(r"^(?:[A-Z_]+=\S+ )*(?:sudo )?(sealift-\w+|pip|uv|hf|curl|apt\S*|dnf|podman|docker|skopeo|oras|ctr|cp|rsync|export|source|"
                      r"srun|sbatch|torchrun|cmake|git|tar|token|python|install|echo|\.)\b")


def headings(text):
    return [len(marks) for marks in re.findall(r"^(#+) ", without_code(text), re.M)]


def without_code(text):
    return re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)


def tables(text):
    """Rows of each table."""
    return [len(rows.splitlines()) for rows in re.findall(r"(?:^\|.*\|\n)+", without_code(text) + "\n", re.M)]


NAMES = re.compile(r"`[^`]+`|(?<![A-Za-z0-9_])(?:[A-Z]\d\d|[a-z0-9]+(?:_[a-z0-9]+)+|[a-z]+(?=\[\]))(?![A-Za-z0-9_])")


def named(text):
    """What each row of a table names: its `code`, keys as free_bytes and roles[], and rows of tests/HOSTILE.md.
    Languages may order them differently; pages that it leads to are no names."""
    rows = re.findall(r"^\|.*\|$", without_code(text), re.M)
    return [sorted(NAMES.findall(re.sub(r"(?:\[[^]]*\.md\]|\])\([^)]*\)", "", row))) for row in rows]


def commands(text):
    """Each line that a person would type, without its comment; of blocks of no language, those that begin with a program."""
    lines = []
    for language, block in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S):
        if language not in ("sh", "console", ""):
            continue
        for line in block.replace("\\\n", " ").splitlines():
            line = re.sub(r"(^|\s+)#( .*)?$", "", line).strip()
            if line and (language or PROGRAMS.match(line) and "->" not in line):
                # What a person writes in a sentence, and the language that is asked for, are translated.
                line = re.sub(r"=[^'=]*'$", "='", line).replace(" --lang zh", "")
                lines.append(re.sub(r"\s+", " ", line))
    return lines


def links(chinese, english):
    """Faults: a page that does not lead to its other language, and a Chinese page that leads to an English one in vain."""
    for page, other in ((chinese, english), (english, chinese)):
        if f"({other.name})" not in page.read_text():
            yield f"{page.relative_to(ROOT)}: no link to {other.name}"
    for target in re.findall(r"\]\(([^)#:]+)\.md[)#]", without_code(chinese.read_text())):
        there = chinese.parent / f"{target}_zh.md"
        if there.is_file() and there.resolve() != chinese:
            yield f"{chinese.relative_to(ROOT)}: leads to {target}.md, which is there in Chinese"


def untold():
    """Pages of docs/ that are neither there in Chinese nor in CONTRIBUTING's list of those that are not."""
    told = (ROOT / "CONTRIBUTING.md").read_text().partition("**Translations.**")[2].partition("\n## ")[0]
    return [f"{page.relative_to(ROOT)}: not in Chinese: write {page.stem}_zh.md, or say why not in CONTRIBUTING.md, Translations"
            for page in sorted(ROOT.glob("docs/*.md"))
            if not page.stem.endswith("_zh") and not page.with_name(f"{page.stem}_zh.md").exists()
            and not re.search(rf"\b{page.stem}\b", told)]


def main():
    faults, pairs = untold(), 0
    for chinese in sorted([*ROOT.glob("*_zh.md"), *ROOT.glob("docs/*_zh.md")]):
        english = chinese.with_name(chinese.name.replace("_zh.md", ".md"))
        pairs += 1
        faults += links(chinese, english)
        here, there = chinese.read_text(), english.read_text()
        for what, of in (("headings", headings), ("tables and their rows", tables), ("the names in rows of tables", named),
                         ("commands", commands)):
            mine, theirs = of(here), of(there)
            if mine == theirs:
                continue
            at = next((i for i, (a, b) in enumerate(zip(mine, theirs)) if a != b), min(len(mine), len(theirs)))
            tell = [str(side[at]) if at < len(side) else "nothing more" for side in (theirs, mine)]
            faults.append(f"{chinese.relative_to(ROOT)}: {what} differ from {english.name}: the {at + 1}th is\n"
                          f"    {tell[0]}\n  there, and here\n    {tell[1]}")
    print("\n".join(faults) or f"translations: {pairs} Chinese pages have the headings, tables and commands of the English")
    return 1 if faults else 0


sys.exit(main())
