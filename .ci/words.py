#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Counts clauses that stand where English has a noun, in comments, in the programs' messages and in English pages
# (CONTRIBUTING.md, "Plain words").
# words_allowed.txt has the count of each pattern: one more is refused, and one less wants the lower number written down.
#   words.py [ROOT]           compares; where they differ, names the files that have the pattern. Exit status 1
#   words.py [ROOT] --list    every place: FILE:LINE: PATTERN: the words around it
#   words.py [ROOT] --write   writes the counts of now
import pathlib
import re
import sys

ROOT = pathlib.Path(next((word for word in sys.argv[1:] if not word.startswith("--")), pathlib.Path(__file__).resolve().parent.parent))
ALLOWED = ROOT / ".ci/words_allowed.txt"
FOLDERS = (".ci", "bench", "bundle", "cmake", "docs", "include", "installer", "launch", "offline_repo", "packager", "samples", "tests",
           "trainer", "verify")
PATTERNS = {
    "that is no": r"\b(?:that|which|who|what) (?:is|are|was|were) no\b(?! (?:longer|more|less|later|older|newer|larger|smaller|better)\b)",
    "is none": r"(?<!there )\b(?:is|are|was|were) none\b",
    "those that": r"\b(?:those|these) (?:that|which|who|whose)\b",
    "the one that": r"\bthe ones? (?:that|which|who)\b",
    "do so": r"\b(?:do|does|did|done|doing) so\b",
    "whoever": r"\bwhoever\b",
}
PATTERNS = {name: re.compile(pattern, re.I) for name, pattern in PATTERNS.items()}
COMMENT = {".hpp": r"(?:^|\s)//[/!<]*( .*|)$", ".cpp": r"(?:^|\s)//[/!<]*( .*|)$"}
STRING = r'"(?:[^"\\\n]|\\.)*"'
SCRIPT = r"(?:^|\s)#( .*|)$"


def pages():
    """Files with words: English pages, and sources of ours."""
    for path in sorted([*ROOT.glob("*"), *(file for folder in FOLDERS for file in (ROOT / folder).rglob("*"))]):
        if path.suffix in (".hpp", ".cpp", ".py", ".sh") or path.name == "CMakeLists.txt":
            yield path, COMMENT.get(path.suffix, SCRIPT)
        elif path.suffix == ".md" and not path.stem.endswith("_zh"):
            yield path, None


def paragraphs(text, comment):
    """(line, words) of each paragraph: a run of comment lines, or of a page's lines outside of ``` blocks. `Code` is left out."""
    begin, words, code = 0, [], False
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if comment is None:
            code ^= line.startswith("```")
            found = None if code or line.startswith("```") else line
        else:
            match = re.search(comment, line)
            found = match[1] if match else None
            if match and match.start() > 0 and words:  # behind code: a sentence of its own
                yield begin, " ".join(words)
                words = []
        if not found or not found.strip():
            if words:
                yield begin, " ".join(words)
            words = []
            continue
        if not words:
            begin = number
        words.append(re.sub(r"`[^`]*`", "`x`", found.strip()))


def messages(text):
    """(line, words) of each string of C++ that has words; strings side by side are one."""
    for match in re.finditer(rf"(?:{STRING}\s*)+", re.sub(r"//[^\n]*", lambda comment: " " * len(comment[0]), text)):
        words = "".join(re.findall(STRING, match[0])).replace('""', "").strip('"')
        if " " in words:
            yield text.count("\n", 0, match.start()) + 1, words


def places():
    for path, comment in pages():
        text = path.read_text(errors="replace")
        ours = path.suffix in (".hpp", ".cpp") and path.relative_to(ROOT).parts[0] != "tests"
        for line, words in [*paragraphs(text, comment), *(messages(text) if ours else ())]:
            for name, pattern in PATTERNS.items():
                for match in pattern.finditer(words):
                    yield name, path.relative_to(ROOT), line, words[max(0, match.start() - 50):match.end() + 50]


def main():
    found = list(places())
    counts = {name: sum(each[0] == name for each in found) for name in PATTERNS}
    if "--list" in sys.argv:
        for name, path, line, words in found:
            print(f"{path}:{line}: {name}: {words}")
        return 0
    if "--write" in sys.argv:
        ALLOWED.write_text("".join(f"{count}\t{name}\n" for name, count in counts.items()))
        return 0
    allowed = {name: int(count) for count, name in (line.split("\t") for line in ALLOWED.read_text().splitlines())}
    for name, count in counts.items():
        if count > allowed.get(name, 0):
            print(f'words: "{name}" stands {count} times, at most {allowed.get(name, 0)} are allowed; write the noun '
                  '(CONTRIBUTING.md, "Plain words"). All places: .ci/words.py --list')
        elif count < allowed[name]:
            print(f'words: "{name}" stands {count} times and {allowed[name]} are allowed: .ci/words.py --write keeps what was won')
    if counts != allowed:
        return 1
    print(f"words: {sum(counts.values())} clauses in place of a noun, none more than before")
    return 0


sys.exit(main())
