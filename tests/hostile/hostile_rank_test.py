#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# A hostile rank, or whoever reaches a job's store: it reads and writes keys of others (which a store of c10d lets it), and
# sends bytes that are no message. A job of one host is reached by nobody from outside; one that is meddled with ends with
# a code of its own or goes on, within its time-out, and never by a crash of the program that serves the store.
#   hostile_rank_test.py BIN [TRIES [SEED]]
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

BIN = pathlib.Path(sys.argv[1]).resolve()
TRIES = int(sys.argv[2]) if len(sys.argv) > 2 else 6
random.seed(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
TRAIN = BIN / "sealift-train"
if not TRAIN.exists():
    print("skipped: sealift-train is not built here")
    sys.exit(77)
MAGIC = 0x3C85F7CE  # with which a client of c10d's store begins (TCPStoreBackend.hpp)
VALIDATE, SET, ADD, DELETE, APPEND = 0, 1, 4, 8, 9
PREFIX = b"/sealift/attempt_0/"
KEYS = [PREFIX + key for key in (b"meeting/verdict", b"meeting/rank/0", b"meeting/rank/1", b"meeting/world_size", b"meeting/arrived", b"epoch",
                                 b"groups/0", b"groups/1", b"report/0", b"report/1", b"failure/0", b"failure/1", b"0", b"1", b"verdict")]
VALUES = [b"", b"all ranks came", b"GOOD: forged\n\x1b]0;x\x07\xe2\x80\xae", b"x" * 1_000_000, b"-1", b"9" * 40, b"\x00\x01\x02", b"{}"]
BAD = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]")
failures, tries, written = [], 0, 0


def check(what, holds, said=""):
    global tries
    tries += 1
    if not holds:
        failures.append(what)
        print("FAILED:", what, str(said)[-800:].encode("unicode_escape").decode(), flush=True)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def other_addresses():
    """Of this host, beside the loopback."""
    text = subprocess.run(["hostname", "-I"], stdout=subprocess.PIPE, text=True).stdout.split()
    return [one for one in text if not one.startswith("127.")]


def start(steps, port, ranks=2):
    out = work / "out"
    shutil.rmtree(out, ignore_errors=True)
    environment = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks)}
    processes = []
    for rank in range(ranks):
        log = open(work / f"log{rank}", "wb")
        processes.append(subprocess.Popen(
            [TRAIN, "run", "--steps", str(steps), "--layers", "1", "--width", "16", "--heads", "2", "--vocabulary", "32", "--context", "8", "--threads", "1",
             "--parallel-method", "fsdp", "--timeout-seconds", "8", "--out", out], stdout=log, stderr=subprocess.STDOUT,
            env={**environment, "RANK": str(rank), "LOCAL_RANK": str(rank)}))
    return processes


def answers(address, port):
    try:
        socket.create_connection((address, port), timeout=2).close()
        return True
    except OSError:
        return False


def meddle(port, share):
    """Writes and deletes keys of others; how many. A store that takes no more has ended with its job."""
    done = 0
    text = lambda data: len(data).to_bytes(8, "little") + data
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as one:
            one.sendall(bytes([VALIDATE]) + MAGIC.to_bytes(4, "little"))
            for key in KEYS:
                if random.random() > share:
                    continue
                what = random.choice((SET, SET, SET, DELETE, APPEND, ADD))
                rest = {DELETE: b"", ADD: (1 << 40).to_bytes(8, "little")}.get(what, text(random.choice(VALUES)))
                one.sendall(bytes([what]) + text(key) + rest)
                done += 1
                if what in (DELETE, ADD):
                    one.recv(8)
    except OSError:
        pass
    return done


def read_back(port, key):
    """What a store says of a key: by comparing it with a text that it is not, so that nothing waits."""
    text = lambda data: len(data).to_bytes(8, "little") + data
    with socket.create_connection(("127.0.0.1", port), timeout=5) as one:
        one.sendall(bytes([VALIDATE]) + MAGIC.to_bytes(4, "little") + bytes([2]) + text(key) + text(b"none") + text(b"none"))
        size = int.from_bytes(one.recv(8), "little")
        return one.recv(size)


def wait_for(port, end=40):
    end += time.monotonic()
    while not answers("127.0.0.1", port):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def finish(what, processes, seconds=60):
    codes, end = [], time.monotonic() + seconds
    for one in processes:
        try:
            codes.append(one.wait(max(1, end - time.monotonic())))
        except subprocess.TimeoutExpired:
            codes.append("no end")
            one.send_signal(signal.SIGKILL)
            one.wait()
    said = "".join((work / f"log{rank}").read_text(errors="surrogateescape") for rank in range(len(processes)))
    # A rank whose peer has failed may be aborted by us at most with a code; a signal is a crash.
    check(what, all(code in (0, 1, 2) for code in codes), (codes, said))
    check(what + ": what is said", not BAD.search(said) and "\nGOOD: forged" not in said, said)
    return codes


work = pathlib.Path(tempfile.mkdtemp(prefix="sealift-rank-"))
try:
    port = free_port()
    ranks = start(30, port)
    assert wait_for(port), (work / "log0").read_text()
    for address in other_addresses():
        check(f"the store answers at an address of the network", not answers(address, port), address)
    with socket.create_connection(("127.0.0.1", port), timeout=5) as one:
        key, value = PREFIX + b"written/by/another", b"x"
        one.sendall(bytes([VALIDATE]) + MAGIC.to_bytes(4, "little") + bytes([SET]) + len(key).to_bytes(8, "little") + key + (1).to_bytes(8, "little") + value)
        time.sleep(0.2)
    check("whoever reaches the store writes into it, as the page says", read_back(port, key) == value)
    check("left alone", finish("left alone", ranks) == [0, 0])
    for number in range(TRIES):
        port = free_port()
        ranks = start(400, port)
        wait_for(port)
        time.sleep(random.uniform(0, 3))
        kind = ("one", "all", "bytes")[number % 3]
        if kind == "bytes":
            for _ in range(40):
                try:
                    with socket.create_connection(("127.0.0.1", port), timeout=2) as one:
                        one.sendall(random.choice([random.randbytes(random.choice((1, 4, 64, 4096))), b"\x00" * 64, b"\xff" * 64,
                                                   b"GET / HTTP/1.1\r\n\r\n", b"\x00\x3c\x85\xf7\xf2\x0d" + random.randbytes(200),
                                                   (0x3C85F7CE).to_bytes(4, "little") + bytes([random.randrange(16)]) + random.randbytes(64),
                                                   (0x3C85F7CE).to_bytes(4, "little") + bytes([random.randrange(16)]) + b"\xff" * 64]))
                    tries += 1
                except OSError:
                    break
        else:
            found = meddle(port, 0.2 if kind == "one" else 1)
            written += found
            tries += found
        codes = finish(f"{kind} {number}", ranks)
        if os.environ.get("SHOW"):
            print(kind, codes, (work / "log0").read_text(errors="replace")[-300:], flush=True)
    print("keys of others that were written:", written)
finally:
    shutil.rmtree(work, ignore_errors=True)
print(f"{tries} tries, {len(failures)} failed")
sys.exit(1 if failures else 0)
