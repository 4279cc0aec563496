#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Each command of ours on each page, in both languages, names a program, a verb and options that there are: in blocks of
# commands and in `sentences`. Whether they do what the page says, tests that run pages show (tests/README.md).
#   page_options_test.py BIN [PAGE...]
import functools
import pathlib
import re
import subprocess
import sys

BIN = pathlib.Path(sys.argv[1]).resolve()
ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAMS = ("sealift-pack", "sealift-install", "sealift-repo", "sealift-train", "sealift-verify", "sealift-launch")
LEFT_OUT = {"CHANGELOG.md"}  # says what programs had
# Alone or by a path at the beginning, else behind another command (`srun sealift-train …`).
COMMAND = re.compile(r"(?:^\s*\S*/|\s)(sealift-(?:pack|install|repo|train|verify|launch)) ([^`\n]*)")
NO_COMMAND = {"needs"}  # "sealift-pack needs 2.36": a message on a page
BAD = """```sh
sealift-install frobnicate /media/disc
sealift-install apply /media/disc --no-such-option   # --nor-this
sealift-install verify /media/disc --fingerprint sha256:…
```
`sealift-install trust forget`, `sealift-install status`, `build/sealift-install apply --bad`, `sealift-install apply --json`
"""


@functools.lru_cache(None)
def help_of(*words):
    done = subprocess.run([str(BIN / words[0]), *words[1:], "--help"], capture_output=True, text=True, timeout=60)
    return done.stdout if done.returncode == 0 else ""


@functools.lru_cache(None)
def verbs_of(*words):
    """Verbs below, and aliases of them; none where the words are a verb themselves."""
    _, _, below = help_of(*words).partition("\nSubcommands:\n")
    return {name.rstrip(",") for name in re.findall(r"^  ([a-z][a-z-]*),?\s", below, re.M)}


@functools.lru_cache(None)
def options_of(*words):
    text = help_of(*words)
    if words[1:] == ("tokenize",):  # Python's
        text = "".join(script.read_text() for script in (ROOT / "trainer/data/tokenize").glob("*.py"))
    if words[1:] == ("race",):  # hands them on
        text += help_of(words[0], "sft")
    return set(re.findall(r"(?<![\w-])(--?[a-zA-Z][\w-]*)", text))


def commands(text):
    """(line, program, rest) of each command: of blocks of sh whole lines, of sentences `spans` of code."""
    code = language = ""
    joined = re.sub(r"\\\n", lambda _: "  ", text)  # lines go on; numbers are then those of the first line, nearly
    for number, line in enumerate(joined.splitlines(), 1):
        if line.startswith("```"):
            code, language = not code, line[3:]
            continue
        if code and language not in ("sh", "console"):
            continue
        spans = [re.sub(r"(^|\s)#.*", "", line)] if code else re.findall(r"`([^`]+)`", line)
        for span in spans:
            for part in re.split(r"[|;&()]+|\$\(", span):
                match = COMMAND.search(" " + part)
                if match and match[2].split()[:1] not in ([word] for word in NO_COMMAND):
                    yield number, match[1], match[2]


def fault(program, rest):
    """What is unknown in this command; "" when nothing is. Behind a placeholder no verb is looked for."""
    words, verb = rest.split(), [program]
    while words and verbs_of(*verb):
        word = words[0].strip(",.:")
        if word in verbs_of(*verb):
            verb.append(word)
        elif word.startswith("-") or not re.fullmatch(r"[a-z][a-z-]+", word):
            break
        else:
            return f"no verb '{word}' of {' '.join(verb)}"
        words = words[1:]
    if program == "sealift-launch":  # the command behind is another program's
        words = [word for word in words[:2] if word.startswith("--")]
    known = options_of(*verb)
    for word in words:
        if word in ("--", ">", "2>"):
            break
        option = re.match(r"\[?(--[a-z][\w-]*)", word)
        if option and option[1] not in known and verbs_of(*verb):
            known = known | set().union(*(options_of(*verb, each) for each in verbs_of(*verb)))  # the verb is "…"
        if option and option[1] not in known:
            return f"{' '.join(verb)} has no {option[1]}"
    return ""


def faults_of(text, programs):
    found = [(number, fault(program, rest), program, rest) for number, program, rest in commands(text) if program in programs]
    return len(found), [f"{number}: {what}: {program} {rest.strip()}" for number, what, program, rest in found if what]


def pages():
    folders = [folder for folder in ROOT.iterdir() if folder.is_dir() and folder.name not in ("build", ".git", "third_party")]
    return sorted({*ROOT.glob("*.md"), *(page for folder in folders for page in folder.rglob("*.md"))} - {ROOT / name for name in LEFT_OUT})


def main():
    built = {program for program in PROGRAMS if (BIN / program).exists()}
    if not built:
        print("skipped: no program is built")
        return 77
    bad = faults_of(BAD, built)
    if "sealift-install" in built and (bad[0], len(bad[1])) != (7, 4):
        print(f"page_options: of seven made commands four are bad, found: {bad}")
        return 1
    count, faults = 0, []
    for page in [pathlib.Path(page) for page in sys.argv[2:]] or pages():
        more, bad = faults_of(page.read_text(), built)
        count += more
        faults += [f"{page.relative_to(ROOT) if page.is_relative_to(ROOT) else page}:{each}" for each in bad]
    print("\n".join([*faults, f"page_options: {count} commands, {len(faults)} with an unknown verb or option"]))
    return 1 if faults or not count else 0


sys.exit(main())
