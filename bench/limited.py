# SPDX-License-Identifier: Apache-2.0
# A part of bench/gpu.sh, for so many seconds: no process of it outlives it, also children with sessions of their own
# (ranks, compilers) or whose parents were killed.
#   limited.py SECONDS COMMAND...
# The kernel gives orphans to this process (PR_SET_CHILD_SUBREAPER), so all that the command has started stay below it. When
# the time is up, or this process is told to end, they get SIGTERM, and SIGKILL after GRACE seconds. What a command leaves
# running when it ends is ended too. Exit status: the command's, 128 + N where signal N ended it, 127 where there is none;
# 124 where the time was up; 143 or 130 where this process was told to end. A line on stderr says what of these it was.
import ctypes
import os
import pathlib
import signal
import subprocess
import sys
import time

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
GRACE, LATE = 5, 5  # seconds: between SIGTERM and SIGKILL; for what ends by itself
told = []  # signals that this process got


def say(text):
    print(f"gpu.sh: {text}", file=sys.stderr, flush=True)


def below(process):
    """Numbers of all processes below `process`; those that have ended and are not waited for are none."""
    parents = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (folder / "stat").read_text().rsplit(")", 1)[1].split()[:2]
        except OSError:  # it has ended
            continue
        if state not in "ZX":
            parents.setdefault(int(parent), []).append(int(folder.name))
    found = [process]
    for each in found:  # which grows
        found += parents.get(each, [])
    return found[1:]


def reap():
    """Waits for orphans that have ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def name_of(process):
    try:
        return pathlib.Path(f"/proc/{process}/comm").read_text().strip()
    except OSError:
        return "gone"


def end_all():
    """Ends all that is below this process; which programs that were."""
    names, asked, begin = sorted(map(name_of, below(os.getpid()))), set(), time.monotonic()
    # A process that waits in a driver does not end: it is named, and the part is over.
    while (alive := below(os.getpid())) and time.monotonic() - begin < 3 * GRACE:
        late = time.monotonic() - begin > GRACE
        for process in alive:
            if late or process not in asked:
                asked.add(process)
                try:
                    os.kill(process, signal.SIGKILL if late else signal.SIGTERM)
                except OSError:
                    pass
        time.sleep(0.02)
        reap()
    if alive:
        return "not ended: " + ", ".join(map(name_of, alive))
    return f"{len(names)} processes ended" + (f" ({', '.join(dict.fromkeys(names))})" if names else "")


def let_end(seconds):
    """What ends by itself once its parent has: Python's servers of processes."""
    limit = time.monotonic() + seconds
    while below(os.getpid()) and time.monotonic() < limit:
        time.sleep(0.02)
        reap()


def wait_for(process, seconds):
    """The exit status of `process`; None where the time was up, or this process was told to end."""
    limit = time.monotonic() + seconds
    while not told and time.monotonic() < limit:
        code = process.poll()
        if code is not None:
            return code if code >= 0 else 128 - code
        time.sleep(0.02)
    return None


def main():
    seconds, command = float(sys.argv[1]), sys.argv[2:]
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)  # gpu.sh was killed
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda got, _frame: told.append(got))
    try:
        process = subprocess.Popen(command, start_new_session=True)
    except OSError as error:
        say(f"{command[0]}: {error.strerror}")
        return 127
    code = wait_for(process, seconds)
    if code is not None:
        let_end(LATE)
    left = end_all()
    if told:
        say(f"told to end by {signal.Signals(told[0]).name}; {left}")
        return 128 + told[0]
    if code is None:
        say(f"not done after {seconds:g} s; {left}")
        return 124
    if code > 128:
        say(f"ended by signal {code - 128}")
    if not left.startswith("0 "):
        say(f"it left some running: {left}")
    return code


sys.exit(main())
