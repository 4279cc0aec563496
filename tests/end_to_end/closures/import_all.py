# SPDX-License-Identifier: Apache-2.0
# Run by the installed Python on the bare host: imports every top-level module of every wheel and loads what every
# console script calls, each in a process of its own. What fails has to be exactly what the list on stdin names.
#   PREFIX/current/bin/python -I import_all.py < unimportable.txt
# One line for each surprise; the last line is "imported N of M". Exit status 1 where there was a surprise.
import importlib
import importlib.metadata
import os
import sys
import tempfile

SUFFIXES = (".py", ".abi3.so", ".cpython-%d%d-x86_64-linux-gnu.so" % sys.version_info[:2])


def modules_of(distribution):
    """What top_level.txt names, and what RECORD shows: packages, folders that hold Python files, single files."""
    names = set((distribution.read_text("top_level.txt") or "").split())
    for file in distribution.files:
        suffix = next((one for one in SUFFIXES if file.name.endswith(one)), None)
        if suffix:
            names.add(file.parts[0] if len(file.parts) > 1 else file.name[: -len(suffix)])
    return {name for name in names if name.isidentifier() and name != "__pycache__"}


def wanted():
    """What to try, under the name that the list has for it."""
    tries = {}
    for distribution in importlib.metadata.distributions():
        for module in modules_of(distribution):
            tries[module] = lambda module=module: importlib.import_module(module)
        for point in distribution.entry_points:
            if point.group == "console_scripts":
                tries["bin/" + point.name] = point.load
    return tries


def fault_of(action):
    """What went wrong in a child; None when nothing did. This process imports nothing of what it tries."""
    with tempfile.TemporaryFile("w+") as said:
        child = os.fork()
        if child == 0:
            os.dup2(said.fileno(), 1)
            os.dup2(said.fileno(), 2)
            status = 0
            try:
                action()
            except BaseException as error:  # a module may leave with SystemExit too
                print("\n%s: %s" % (type(error).__name__, str(error).replace("\n", " ")), flush=True)
                status = 1
            os._exit(status)
        status = os.waitpid(child, 0)[1]
        said.seek(0)
        last = (said.read().strip().splitlines() or ["nothing said"])[-1]
    if status == 0:
        return None
    return "signal %d: %s" % (os.WTERMSIG(status), last) if os.WIFSIGNALED(status) else last


def main():
    lines = (line.rstrip("\n") for line in sys.stdin)
    reasons = dict(line.split("\t", 1) for line in lines if line and not line.startswith("#"))
    tries = wanted()
    good = surprises = 0
    for name in sorted(tries):
        fault = fault_of(tries[name])
        good += fault is None
        if fault is not None and name not in reasons:
            print("%s cannot be imported: %s" % (name, fault), flush=True)
        elif fault is None and name in reasons:
            print("%s can be imported, against the list: %s" % (name, reasons[name]), flush=True)
        else:
            continue
        surprises += 1
    print("imported %d of %d" % (good, len(tries)))
    return surprises > 0


sys.exit(main())
