#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Prints the ninja targets that the chosen tests start, a line each; `all` where a test does not say which they are.
# Between configuring and building, when tests/run.sh was told which tests to run.
# A test's command, as CMake wrote it down, names the programs that it starts.
#   needed.py BUILD CTEST_ARGUMENTS...
import pathlib
import re
import subprocess
import sys

# What scripts find in the folder of programs, when they are given no more than that folder.
TOOLS = ("sealift-pack", "sealift-install", "sealift-repo", "sealift-start", "sealift-launch")


def commands(build):
    """Test -> the words of its command, and the values of its variables."""
    found = {}
    for file in build.rglob("CTestTestfile.cmake"):
        text = file.read_text()
        for name, words in re.findall(r'^add_test\(\[=*\[(.+?)\]=*\] (.*)\)$', text, re.M):
            found[name] = re.findall(r'"((?:[^"\\]|\\.)*)"', words)
        for name, variables in re.findall(r'^set_tests_properties\(\[=*\[(.+?)\]=*\] .* ENVIRONMENT "(.*?)"', text, re.M):
            found[name] += [variable.partition("=")[2] for variable in variables.split(";")]
    return found


def needs(words, build):
    """The targets, relative to the build folder, that a command names."""
    for word in words:
        path = pathlib.Path(word)
        if path == build:
            yield "all"
        elif path == build / "bin":
            yield from (f"bin/{tool}" for tool in TOOLS)
        elif path.is_relative_to(build / "bin") or path.is_relative_to(build / "lib"):
            yield str(path.relative_to(build))


def main(build, arguments):
    listed = subprocess.run(["ctest", "--test-dir", build, "-N", *arguments], check=True, capture_output=True, text=True)
    known = commands(build)
    chosen = re.findall(r"^ +Test +#\d+: (\S+)", listed.stdout, re.M)
    targets = {target for name in chosen for target in needs(known[name], build)}
    print("\n".join(["all"] if "all" in targets else sorted(targets)))


main(pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:])
