# SPDX-License-Identifier: Apache-2.0
# Run by an environment's Python: says of each top-level module of each distribution whether it can be imported, so that
# two environments can be compared line by line; and with --list, which distributions there are.
#   python -I imports.py [--list]
# A module is tried in a child of its own. What most of them import is imported here first, once, where it is there.
import importlib
import importlib.metadata
import os
import re
import signal
import sys
import tempfile

SUFFIXES = (".py", ".abi3.so", ".cpython-%d%d-x86_64-linux-gnu.so" % sys.version_info[:2])
FIRST = ("numpy", "torch", "pandas", "scipy", "pyarrow", "transformers")
SECONDS = 120


def canonical(name):
    return re.sub("[-_.]+", "-", name).lower()


def modules():
    names = set()
    for distribution in importlib.metadata.distributions():
        for file in distribution.files or ():
            suffix = next((one for one in SUFFIXES if file.name.endswith(one)), None)
            if suffix:
                names.add(file.parts[0] if len(file.parts) > 1 else file.name[: -len(suffix)])
    return sorted(name for name in names if name.isidentifier() and name != "__pycache__")


def fault_of(name):
    """The last line of what a failed import said; None when it worked."""
    with tempfile.TemporaryFile("w+") as said:
        child = os.fork()
        if child == 0:
            os.dup2(said.fileno(), 1)
            os.dup2(said.fileno(), 2)
            signal.alarm(SECONDS)
            status = 0
            try:
                importlib.import_module(name)
            except BaseException as error:  # a module may leave with SystemExit too
                print("\n%s: %s" % (type(error).__name__, str(error).replace("\n", " ")[:300]), flush=True)
                status = 1
            os._exit(status)
        status = os.waitpid(child, 0)[1]
        said.seek(0)
        last = (said.read().strip().splitlines() or ["nothing said"])[-1]
    if status == 0:
        return None
    return "signal %d" % os.WTERMSIG(status) if os.WIFSIGNALED(status) else last.replace(sys.prefix, "PREFIX")


def main():
    if sys.argv[1:] == ["--list"]:
        print("\n".join(sorted("%s==%s" % (canonical(one.metadata["Name"]), one.version)
                               for one in importlib.metadata.distributions())))
        return
    for name in FIRST:
        try:
            importlib.import_module(name)
        except Exception:  # told below, where it is tried as the others are
            pass
    for name in modules():
        fault = fault_of(name)
        print("%s\t%s" % (name, "OK" if fault is None else "FAILED " + fault), flush=True)


main()
