#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# A run that does not come to its end leaves a report: a rank is killed or stopped, the run is told to end, a disk is
# full. The survivor says FAIL for the check that ran, with the host and the rank, NOT RUN for the rest, in both
# languages; the exit code is that of the rank or of the signal.
#   ended_test.py SEALIFT_VERIFY [TORCHRUN]
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
TORCHRUN = sys.argv.pop(1) if len(sys.argv) > 1 and sys.argv[1].endswith("torchrun") else None
LONG = ["--device", "cpu", "--level", "burn", "--only", "arithmetic.heat", "--only", "machine.host"]
HOST = socket.gethostname()
PAGES = pathlib.Path(__file__).parent.parent / "pages/chinese_pages.py"
FILES = ["report.html", "report.json", "report.txt", "report.zh.html", "report.zh.txt"]


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return str(one.getsockname()[1])


def of_world(rank, size, address="127.0.0.1"):
    """The variables of a rank that a launcher has started on a host of its own; the port is another each time."""
    return {"RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1",
            "MASTER_ADDR": address, "MASTER_PORT": free_port()}


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

    def __init__(self, folder, *arguments, check="arithmetic.heat", seconds=600, variables={}, launcher=(), what=LONG):
        self.folder, self.out = pathlib.Path(folder), pathlib.Path(folder) / "out"
        (self.folder / "site.toml").write_text(f"[arithmetic]\nburn_seconds = {seconds}\n")
        self.scratch = self.folder / "scratch"
        self.scratch.mkdir(exist_ok=True)
        with open(self.folder / "log", "w") as log:
            self.process = subprocess.Popen(
                [*launcher, VERIFY, "run", *what, "--site", self.folder / "site.toml", "--prefix", self.folder,
                 "--out", self.out, *arguments], stdout=log, stderr=log,
                env={**os.environ, "TMPDIR": str(self.scratch), **variables})
        while check and not self.runs(check):
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
        try:
            return self.process.wait(90)
        finally:
            self.process.kill()  # of one that does not, what it started ends with it

    def left(self):
        """What is left in the folder of temporary files."""
        return [each.name for each in self.scratch.iterdir()]

    def report(self):
        for name in FILES:
            assert (self.out / name).stat().st_size > 0, f"{name} is not there: {self.said()}"
        return json.loads((self.out / "report.json").read_text())


def start(folder, *arguments, launcher=(), **variables):
    """A run that is not waited for."""
    return Run(folder, *arguments, check=None, variables=variables, launcher=launcher)


class OutOfMemory:
    """A control group that may have next to no memory, of version 2 or 1."""

    def __init__(self):
        name = f"sealift-test-{os.getpid()}"
        for parent, limit, kills in (("/sys/fs/cgroup", "memory.max", "memory.events"),
                                     ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.oom_control")):
            self.path = pathlib.Path(parent) / name
            try:
                self.path.mkdir()
            except OSError:
                continue
            if (self.path / "cgroup.procs").exists() and (self.path / limit).exists():
                (self.path / limit).write_text("1048576")
                self.counts = self.path / kills
                return
            self.path.rmdir()
        raise unittest.SkipTest("no control group of memory can be made here")

    def take(self, pid):
        (self.path / "cgroup.procs").write_text(str(pid))

    def kills(self):
        return int(dict(line.split() for line in self.counts.read_text().splitlines())["oom_kill"])

    def remove(self):
        self.path.rmdir()


class InFolder(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)


class BeforeTheFirstCheck(InFolder):
    """A rank that never comes to a check: the check that runs is installation.start."""

    def failed(self, run, how, how_zh, culprits):
        report = run.report()
        self.assertEqual(report["verdict"], "FAIL", run.said())
        checks = {check["name"]: check for check in report["checks"]}
        began = checks.pop("installation.start")
        self.assertEqual(began["outcome"], "FAIL", run.said())
        self.assertIn(how, began["reason"]["en"])
        self.assertIn("while this check ran since 20", began["reason"]["en"])
        self.assertIn(how_zh, began["reason"]["zh"])
        self.assertEqual(began["at_fault"], culprits)
        self.assertEqual({check["outcome"] for check in checks.values()}, {"NOT RUN"})
        self.assertIn("the run ended in installation.start", checks["machine.host"]["reason"]["en"])
        self.assertIn("--only", checks["communication.right"]["reason"]["en"])
        self.assertEqual(subprocess.run([sys.executable, PAGES, run.out]).returncode, 0)

    def rank(self, run, rank):
        """That process, as soon as it is there; it has not met the others by far."""
        while rank not in (ranks := ranks_below(run.process.pid)):
            self.assertIsNone(run.process.poll(), run.said())
        return ranks[rank]

    def test_a_rank_that_is_killed_is_named(self):
        for rank, which in ((1, signal.SIGKILL), (0, signal.SIGABRT)):
            with self.subTest(rank=rank, which=which), tempfile.TemporaryDirectory() as folder:
                run = start(folder, "--ranks", "2")
                os.kill(self.rank(run, rank), which)
                self.assertEqual(run.ends(), 128 + which, run.said())
                self.failed(run, f"was ended by signal {which.value} ({which.name})",
                            f"被信号 {which.value}（{which.name}）", [f"rank {rank} on {HOST} (cpu)"])

    def test_a_rank_alone_that_is_killed_is_named(self):
        run = start(self.folder.name)
        while not (children := below(run.process.pid)):
            self.assertIsNone(run.process.poll(), run.said())
        os.kill(children[0], signal.SIGKILL)
        self.assertEqual(run.ends(), 137, run.said())
        self.failed(run, "want of memory", "内存不足", [f"rank 0 on {HOST} (cpu)"])

    def test_a_rank_that_hangs_is_named(self):
        run = start(self.folder.name, "--ranks", "2", "--patience", "5")
        os.kill(self.rank(run, 1), signal.SIGSTOP)
        self.assertEqual(run.ends(), 1, run.said())
        self.failed(run, "did not come within 5 s", "在 5 秒内没有到达", [f"rank 1 on {HOST} (cpu)"])

    def test_hosts_that_never_come_are_named(self):
        run = start(self.folder.name, "--patience", "3", **of_world(0, 3))
        self.assertEqual(run.ends(), 1, run.said())
        self.failed(run, "rank 1, rank 2 did not come within 3 s", "没有到达", ["rank 1", "rank 2"])

    def test_what_a_rank_said_before_it_ended_is_told(self):
        run = start(self.folder.name, "--patience", "6", **of_world(0, 2))
        while not (run.out / "checks/under_way.json").exists():
            self.assertIsNone(run.process.poll(), run.said())
        lost = start(self.folder.name, "--patience", "1", **of_world(1, 2))
        self.assertEqual(lost.ends(), 1)
        self.assertEqual(run.ends(), 1, run.said())
        self.failed(run, "rank 1 ended: no store answers at 127.0.0.1:", "进程 1 结束：", ["rank 1"])

    def test_a_wrong_address_of_rank_0_is_told(self):
        for address, why in (("no-such-host.invalid", "no-such-host.invalid"), ("192.0.2.1", "192.0.2.1")):
            with self.subTest(address=address), tempfile.TemporaryDirectory() as folder:
                run = start(folder, "--patience", "3", **of_world(0, 2, address))
                self.assertEqual(run.ends(), 1, run.said())
                self.failed(run, why, why, [f"rank 0 on {HOST} (cpu)"])

    def test_a_launcher_that_cannot_start_ranks_says_why(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            run = start(self.folder.name, NNODES="2", NODE_RANK="0", NPROC_PER_NODE="2", MASTER_ADDR="127.0.0.1",
                        MASTER_PORT=str(taken.getsockname()[1]))
            self.assertEqual(run.ends(), 1, run.said())
        self.failed(run, "the run ended: port", "本次运行：结束：port", [])

    def test_who_tells_it_to_end_gets_a_report(self):
        run = start(self.folder.name, "--patience", "60", **of_world(0, 2))
        while not (run.out / "checks/under_way.json").exists():
            self.assertIsNone(run.process.poll(), run.said())
        run.process.send_signal(signal.SIGTERM)
        self.assertEqual(run.ends(), 143, run.said())
        self.failed(run, "the run was told to end from outside, by signal 15 (SIGTERM)",
                    "收到外部发来的信号 15（SIGTERM）", [])

    def test_wrong_arguments_leave_neither_a_report_nor_a_trace(self):
        of_two = {"NNODES": "1", "NPROC_PER_NODE": "2"}
        for arguments, variables in ((["--only", "nothing"], {}), (["--ranks", "3"], of_two)):
            with self.subTest(arguments=arguments), tempfile.TemporaryDirectory() as folder:
                run = start(folder, *arguments, **variables)
                self.assertEqual(run.ends(), 2, run.said())
                self.assertEqual([each for each in FILES if (run.out / each).exists()], [])
                self.assertFalse((run.out / "checks/under_way.json").exists())


class Ended(InFolder):

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
        self.assertEqual(named, [f"rank {culprit} on {HOST} (cpu)"] if culprit is not None else [])
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
        self.failed(run, "rank 1 on", "被信号 9（SIGKILL）", culprit=1)

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
                    self.failed(run, f"the run was told to end from outside, by signal {which.value} ({which.name})",
                                f"收到外部发来的信号 {which.value}（{which.name}）")
                    self.assertEqual(run.left(), [])

    def test_what_a_killed_run_left_is_removed_by_the_next_and_a_living_run_keeps_its_own(self):
        run = Run(self.folder.name)
        killed = run.left()
        self.assertRegex(killed[0], "^sealift-verify-......$")
        rank = below(run.process.pid)[0]
        run.process.kill()  # who would clear them first
        os.kill(rank, signal.SIGKILL)
        run.ends()
        self.assertEqual(run.left(), killed)
        with tempfile.TemporaryDirectory() as folder:
            alive = Run(folder, variables={"TMPDIR": str(run.scratch)})
            self.addCleanup(alive.process.kill)
            of_alive = run.left()
            self.assertEqual(len(of_alive), 1)
            self.assertNotEqual(of_alive, killed)
            other = Run(self.folder.name)
            other.process.send_signal(signal.SIGTERM)
            other.ends()
            self.assertEqual(run.left(), of_alive)
            alive.process.send_signal(signal.SIGTERM)
            alive.ends()
        self.assertEqual(run.left(), [])

    def test_a_rank_that_has_no_memory_left_is_named(self):
        """A control group without memory: the kernel itself ends the rank when it asks for its next page."""
        group = OutOfMemory()
        self.addCleanup(group.remove)
        run = Run(self.folder.name, "--ranks", "2")
        group.take(ranks_below(run.process.pid)[1])
        self.assertEqual(run.ends(), 137, run.said())
        self.assertGreater(group.kills(), 0)
        self.failed(run, "was ended by signal 9 (SIGKILL), as the kernel does for want of memory", "内存不足", culprit=1)
        self.assertEqual(subprocess.run([sys.executable, PAGES, run.out]).returncode, 0)

    def test_minutes_keep_the_quick_steps_going(self):
        quick = ["--device", "cpu", "--level", "quick", "--only", "arithmetic.same_bits"]
        with tempfile.TemporaryDirectory() as folder:
            began = time.monotonic()
            twice = Run(folder, check=None, what=quick)
            twice.process.wait(90)
            took = time.monotonic() - began
        run = Run(self.folder.name, "--minutes", "1440", check="arithmetic.same_bits", what=quick)
        with self.assertRaises(subprocess.TimeoutExpired):
            run.process.wait(2 * took)
        run.process.send_signal(signal.SIGTERM)
        self.assertEqual(run.ends(), 143, run.said())
        checks = {check["name"]: check for check in run.report()["checks"]}
        self.assertEqual(checks["arithmetic.same_bits"]["outcome"], "FAIL")
        self.assertIn("told to end from outside", checks["arithmetic.same_bits"]["reason"]["en"])

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

    def test_a_slow_end_of_all_ranks_is_nobody_s_fault(self):
        """Of several ranks that are told together, as a scheduler does, none is taken for one that had died before."""
        run = Run(self.folder.name, "--ranks", "3")
        for rank in ranks_below(run.process.pid).values():
            os.kill(rank, signal.SIGTERM)
        run.ends()
        self.failed(run, "the run was told to end from outside, by signal 15", "收到外部发来的信号 15")

    def test_a_rank_that_had_finished_when_the_run_was_told_to_end_is_not_lost(self):
        """Rank 0 stands still, as one that judges for long: rank 1 has nothing more to do, and ends."""
        run = Run(self.folder.name, "--ranks", "2", seconds=2)
        first, other = (ranks_below(run.process.pid)[rank] for rank in (0, 1))
        os.kill(first, signal.SIGSTOP)
        while other in below(run.process.pid):
            self.assertIsNone(run.process.poll(), run.said())
            time.sleep(0.05)
        run.process.send_signal(signal.SIGTERM)
        os.kill(first, signal.SIGCONT)
        self.assertEqual(run.ends(), 143, run.said())
        self.failed(run, "the run was told to end from outside, by signal 15", "收到外部发来的信号 15")

    def test_a_terminal_that_goes_does_not_end_a_run_of_nohup(self):
        for arguments in ((), ("--ranks", "2")):
            with self.subTest(arguments=arguments), tempfile.TemporaryDirectory() as folder:
                run = Run(folder, *arguments, seconds=1, launcher=["nohup"])
                for each in (run.process.pid, *below(run.process.pid)):
                    os.kill(each, signal.SIGHUP)
                self.assertIn(run.ends(), (0, 3), run.said())
                self.assertNotEqual(run.report()["verdict"], "FAIL", run.said())


class WithoutALauncher(InFolder):
    """Ranks that somebody else starts, each alone, and that are told to end by a signal of Ctrl-C's or a terminal's."""

    failed = Ended.failed

    def started(self):
        """Rank 0, in its long check, and rank 1."""
        world, folders = of_world(0, 2), []
        for _ in range(2):
            folders.append(tempfile.TemporaryDirectory())
            self.addCleanup(folders[-1].cleanup)
        other = start(folders[1].name, **{**world, "RANK": "1"})
        self.addCleanup(other.process.kill)
        return Run(folders[0].name, variables=world), other

    def test_all_that_are_told_are_nobody_s_fault(self):
        for which in (signal.SIGINT, signal.SIGHUP):
            with self.subTest(which=which):
                run, other = self.started()
                other.process.send_signal(which)
                run.process.send_signal(which)
                self.assertEqual(run.ends(), 128 + which, run.said())
                self.failed(run, f"the run was told to end from outside, by signal {which.value} ({which.name})",
                            f"收到外部发来的信号 {which.value}（{which.name}）")
                self.assertEqual(subprocess.run([sys.executable, PAGES, run.out]).returncode, 0)

    def test_who_had_ended_before_is_named_with_the_signal_that_came(self):
        for which in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(which=which):
                run, other = self.started()
                other.process.kill()
                other.process.wait()
                run.process.send_signal(which)
                self.assertEqual(run.ends(), 128 + which, run.said())
                self.failed(run, "ended without a word before the run was told to end from outside, by signal "
                            f"{which.value} ({which.name})", f"收到外部发来的信号 {which.value}（{which.name}）之前", culprit=1)


@unittest.skipUnless(TORCHRUN, "no torchrun")
class UnderTorchrun(InFolder):
    """torchrun's own exit code is 1, whatever a rank's was, which it says; it ends the others by SIGTERM."""

    failed = Ended.failed
    LAUNCHER = [TORCHRUN, "--no-python", "--nproc_per_node", "2", "--master_port", free_port()]

    def test_a_rank_that_is_killed_is_named(self):
        run = Run(self.folder.name, launcher=self.LAUNCHER)
        os.kill(ranks_below(run.process.pid)[1], signal.SIGKILL)
        self.assertEqual(run.ends(), 1, run.said())
        self.assertRegex(run.said(), r"exitcode\s*: -9")
        self.failed(run, "ended without a word before the run was told to end", "之前已结束且没有留下消息", culprit=1)

    def test_wrong_arguments_are_told_with_their_code(self):
        run = start(self.folder.name, "--only", "nothing", launcher=self.LAUNCHER)
        self.assertEqual(run.ends(), 1, run.said())
        self.assertRegex(run.said(), r"exitcode\s*: 2")
        self.assertEqual([each for each in FILES if (run.out / each).exists()], [])


unittest.main(verbosity=2)
