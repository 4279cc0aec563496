#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# A run that does not come to its end leaves a report: a rank is killed or stopped, the run is told to end, a disk is
# full. Whoever lives says FAIL for the check that ran, with the host and the rank, NOT RUN for the rest, in both
# languages; the exit code is that of the rank or of the signal.
#   ended_test.py SEALIFT_VERIFY
import ctypes
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

VERIFY = os.path.abspath(sys.argv.pop(1))
LONG = ["--device", "cpu", "--level", "burn", "--only", "arithmetic.heat", "--only", "machine.host"]
FILES = ["report.html", "report.json", "report.txt", "report.zh.html", "report.zh.txt"]


def command_line(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def below(pid):
    """The processes that `pid` has started, and theirs."""
    try:
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [each for child in children for each in [int(child), *below(int(child))]]


def ranks_below(pid):
    """By RANK, the processes that are ranks."""
    ranks = {}
    for each in below(pid):
        try:
            variables = pathlib.Path(f"/proc/{each}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        for variable in variables:
            if variable.startswith(b"RANK=") and b"sealift-verify" in command_line(each):
                ranks[int(variable[5:])] = each
    return ranks


class Run:
    """A run that is in its long check."""

    def __init__(self, folder, *arguments, check="arithmetic.heat", seconds=600):
        self.folder, self.out = pathlib.Path(folder), pathlib.Path(folder) / "out"
        (self.folder / "site.toml").write_text(f"[arithmetic]\nburn_seconds = {seconds}\n")
        with open(self.folder / "log", "w") as log:
            self.process = subprocess.Popen(
                [VERIFY, "run", *LONG, "--site", self.folder / "site.toml", "--prefix", self.folder, "--out", self.out,
                 *arguments], stdout=log, stderr=log)
        while not self.runs(check):
            assert self.process.poll() is None, self.said()
            time.sleep(0.05)

    def runs(self, check):
        try:
            return json.loads((self.out / "checks/under_way.json").read_text())["left"][0]["name"] == check
        except (OSError, ValueError):
            return False

    def said(self):
        return (self.folder / "log").read_text()

    def ends(self):
        return self.process.wait(90)

    def report(self):
        for name in FILES:
            assert (self.out / name).stat().st_size > 0, f"{name} is not there: {self.said()}"
        return json.loads((self.out / "report.json").read_text())


class Ended(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def failed(self, run, how, how_zh, culprit=None):
        report = run.report()
        self.assertEqual(report["verdict"], "FAIL", run.said())
        checks = {check["name"]: check for check in report["checks"]}
        heat = checks["arithmetic.heat"]
        self.assertEqual(heat["outcome"], "FAIL")
        self.assertIn(how, heat["reason"]["en"])
        self.assertIn("while this check ran since 20", heat["reason"]["en"])
        self.assertIn(how_zh, heat["reason"]["zh"])
        named = [each["en"] if isinstance(each, dict) else each for each in heat["at_fault"]]
        self.assertEqual(named, [f"rank {culprit} on {socket.gethostname()} (cpu)"] if culprit is not None else [])
        self.assertNotEqual(checks["machine.host"]["reason"]["en"], "")  # was done before
        self.assertEqual(checks["communication.right"]["outcome"], "NOT RUN")
        self.assertIn(how_zh, (run.out / "report.zh.txt").read_text())
        left = sorted(each.name for each in (run.out / "checks").iterdir())
        self.assertNotIn("under_way.json", left)
        self.assertNotIn("room", left)

    def test_a_rank_that_is_killed_is_named_and_its_code_is_the_run_s(self):
        run = Run(self.folder.name, "--ranks", "2")
        os.kill(ranks_below(run.process.pid)[1], signal.SIGKILL)
        self.assertEqual(run.ends(), 137, run.said())
        self.failed(run, "rank 1 on", "被signal 9", culprit=1)

    def test_rank_0_that_is_killed_is_named(self):
        run = Run(self.folder.name, "--ranks", "2")
        os.kill(ranks_below(run.process.pid)[0], signal.SIGKILL)
        self.assertEqual(run.ends(), 137, run.said())
        self.failed(run, "want of memory", "内存不足", culprit=0)

    def test_a_rank_alone_that_is_killed_is_named(self):
        run = Run(self.folder.name)
        os.kill(below(run.process.pid)[0], signal.SIGKILL)
        self.assertEqual(run.ends(), 137, run.said())
        self.failed(run, "was ended by signal 9", "内存不足", culprit=0)

    def test_a_rank_that_is_stopped_is_named_with_the_time(self):
        run = Run(self.folder.name, "--ranks", "2", "--patience", "4", seconds=3)
        os.kill(ranks_below(run.process.pid)[1], signal.SIGSTOP)
        self.assertEqual(run.ends(), 1, run.said())
        self.failed(run, "is silent since 20", "起没有消息", culprit=1)

    def test_who_tells_a_run_to_end_gets_a_report(self):
        for which, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
            for arguments in ((), ("--ranks", "2")):
                with self.subTest(which=which, arguments=arguments), tempfile.TemporaryDirectory() as folder:
                    run = Run(folder, *arguments)
                    run.process.send_signal(which)
                    self.assertEqual(run.ends(), code, run.said())
                    self.failed(run, "the run was told to end by", "而结束")

    def test_what_was_recorded_is_not_repeated(self):
        run = Run(self.folder.name)
        run.process.send_signal(signal.SIGTERM)
        run.ends()
        again = Run(self.folder.name)
        again.process.send_signal(signal.SIGTERM)
        again.ends()
        self.assertIn("machine.host", again.said())
        self.assertIn("(recorded)", again.said())

    def test_a_full_disk_takes_the_report_for_which_room_was_kept(self):
        out = pathlib.Path(self.folder.name) / "out"
        out.mkdir()
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mount(b"none", bytes(out), b"tmpfs", 0, b"size=8m,mode=700") != 0:
            self.skipTest("nothing can be mounted here")
        self.addCleanup(lambda: libc.umount2(bytes(out), 2))
        run = Run(self.folder.name, seconds=2)
        fills = os.open(out / "fills", os.O_CREAT | os.O_WRONLY)
        self.addCleanup(os.close, fills)
        try:
            while True:
                os.write(fills, b"x" * 4096)
        except OSError:
            pass
        self.assertEqual(run.ends(), 1, run.said())
        self.failed(run, "cannot write", "No space left on device", culprit=0)


unittest.main(verbosity=2)
