#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Each option and argument of our programs that takes a text, and each variable that our sources read, stands in
# path_options.txt, which says what keeps another user of the machine out of the path that it names. One that stands
# there no longer, or in no list, fails.
#   path_options_test.py BIN
import pathlib
import re
import subprocess
import sys

BIN = pathlib.Path(sys.argv[1]).resolve()
LIST = pathlib.Path(__file__).parent / "path_options.txt"
PROGRAMS = ("sealift-pack", "sealift-install", "sealift-repo", "sealift-train", "sealift-verify")
KINDS = ("trusted", "new", "hostile", "named", "caller", "hashed", "own", "text")
ROOT = LIST.parent.parent.parent
OWN = ROOT / "packager/host/own_variables.cpp"
SOURCES = ("bundle", "include", "packager", "installer", "offline_repo", "trainer", "verify", "launch")
# A variable's name where it is read, and whole lists of them.
READ = re.compile(r'(?:getenv|own_variable|folder_of|[^_\w]variable)\("([A-Za-z][A-Za-z0-9_]*)"')
NAMES = re.compile(r"(?:for \(const char\* name\s*:\s*|constexpr (?:const char\* |std::array(?:<[^=]*>)? )k\w+(?:\[\])? = )"
                   r"\{(.*?)\}", re.S)
A_PATH = re.compile(r"\b(file|files|folder|folders|path|dir)\b", re.I)


def helped(words):
    done = subprocess.run([str(word) for word in words] + ["--help"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=60)
    if done.returncode != 0:  # `tokenize` needs a Python
        print("not looked at:", *words[1:], "which says:", done.stderr.strip()[:200])
    return done.stdout if done.returncode == 0 else ""


def options_of(words, above=""):
    """(verb, option) of the program and of each verb below."""
    section, verb = "", " ".join(map(str, words[1:]))
    text = helped(words)
    if text == above or not text.strip():  # a verb that hands its words on, and is the program above to --help
        return
    for line in text.splitlines():
        if line and not line.startswith(" "):
            section = line
        found = re.match(r"  (\S+)(?: ([A-Z]+\S*(?: \.\.\.)?(?: REQUIRED)?)?)?(?:\s+(.*))?$", line)
        if not found or line.startswith("   "):
            continue
        names, kind, what = found.group(1), found.group(2) or "", found.group(3) or ""
        if section.startswith("Subcommands"):
            yield from options_of([*words, names.rstrip(",")], text)
        elif not names.startswith("-h,"):
            option = names.split(",")[-1].split("{")[0]
            # Of a trainer's hundred settings only the ones that speak of a file; the other programs are asked for each
            # text.
            train = words[0].name == "sealift-train"
            says_path = A_PATH.search(what) or A_PATH.search(option.replace("-", " "))
            numbers = re.match(r"(UINT|INT|FLOAT|NUMBER)", kind)
            if option != "--version" and not numbers and (says_path or kind.startswith("TEXT") and not train):
                yield verb, option


def variables():
    found = set()
    for file in (file for folder in SOURCES for file in (ROOT / folder).rglob("*.?pp")):
        text = file.read_text()
        if "getenv(" not in text and "own_variable(" not in text:
            continue
        found |= set(READ.findall(text))
        for names in (re.findall(r'"([^"]*)"', part) for part in NAMES.findall(text)):
            if names and all(re.fullmatch(r"[A-Z][A-Z0-9_]+|[a-z]+_proxy", name) for name in names):
                found |= set(names)
    return found


listed, listed_variables = {}, {}
for number, line in enumerate(LIST.read_text().splitlines(), 1):
    words = line.split("#")[0].split()
    if not words:
        continue
    kind = words[-1]
    if kind not in KINDS:
        sys.exit(f"{LIST.name}:{number}: {kind} is none of {', '.join(KINDS)}")
    if words[0] == "variable":
        listed_variables.update({name: (number, kind) for name in words[1].split(",")})
        continue
    program, verbs, option, _ = words
    for verb in verbs.split(","):
        listed[program, verb.replace("/", " "), option] = [number, False]

missing, looked = [], 0
for program in PROGRAMS:
    if not (BIN / program).exists():
        print(f"not built here, not looked at: {program}")
        for key in listed:
            if key[0] == program:
                listed[key][1] = True
        continue
    for verb, option in options_of([BIN / program]):
        looked += 1
        key = next((key for key in ((program, verb, option), (program, "*", option)) if key in listed), None)
        if key is None:
            missing.append(f"{program} {verb.replace(' ', '/') or '-'} {option}")
        else:
            listed[key][1] = True
gone = [f"{LIST.name}:{number}: there is no such option" for number, seen in listed.values() if not seen]
read = variables()
missing += [f"variable {name}" for name in sorted(read - set(listed_variables))]
gone += [f"{LIST.name}:{number}: no source reads {name}" for name, (number, _) in listed_variables.items() if name not in read]
asked = set(re.findall(r'"([A-Z_]+)"', re.search(r"kLeading = \{(.*?)\}", OWN.read_text(), re.S).group(1)))
missing += [f"variable {name} own, as {OWN.name} has it" for name in sorted(asked)
            if listed_variables.get(name, (0, ""))[1] != "own"]
gone += [f"{LIST.name}:{number}: {OWN.name} does not ask about {name}"
         for name, (number, kind) in listed_variables.items() if kind == "own" and name not in asked]
for line in missing:
    print("in no list:", line)
print("\n".join(gone))
print(f"{looked} options that take a text or name a path, {len(read)} variables; "
      f"{len(missing)} in no list, {len(gone)} gone")
sys.exit(1 if missing or gone or looked < 60 or len(read) < 50 else 0)
