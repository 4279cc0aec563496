# SPDX-License-Identifier: Apache-2.0
# Runs what pages tell people to type, as it stands there: each command of each block of sh. A table says what stands for
# a page's placeholders, what is added to a command, and which exit codes are right, or why it is not run here. A command
# that the table lacks fails the test, and so does a row whose command no page has any more.
# The Chinese pages have the same commands: .ci/translations.py compares them.
import collections
import os
import pathlib
import re
import socket
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Of one command: text to put in place of other text, words to add at the end, good exit codes.
Way = collections.namedtuple("Way", "instead more codes", defaults=({}, "", (0,)))
STATE = re.compile(r"cd |export |\. |\w+=")  # lines that later lines of a block stand on


def need(holds, what):
    if not holds:
        sys.exit(f"{pathlib.Path(sys.argv[0]).name}: {what}")


def blocks(page):
    return re.findall(r"^```(\w*)\n(.*?)^```$", (ROOT / page).read_text(), flags=re.M | re.S)


def commands(text):
    """The commands of a block, each in one line and without its comment."""
    joined = text.replace("\\\n", " ")
    lines = (re.sub(r"(^|\s+)#.*", "", line).strip() for line in joined.splitlines())
    return [re.sub(r"\s+", " ", line) for line in lines if line]


def forms(command):
    """A command with `[--option VALUE]`: with none of them, and with all."""
    if not re.search(r"\[--", command):
        return [command]
    return [re.sub(r"\s*\[[^]]*\]", "", command), command.replace("[", "").replace("]", "")]


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Pages:
    """`run` has a Way by command, `not_here` reasons by what commands begin with; `instead` holds in each; `folder`: where."""

    def __init__(self, folder, run, not_here, instead=(), path=(), **variables):
        self.folder, self.run, self.not_here, self.instead, self.seen = folder, run, not_here, dict(instead), set()
        self.environment = {**os.environ, **variables, "HOME": str(folder / "home"),
                            "PATH": ":".join([*map(str, path), os.environ["PATH"]])}
        self.counts = collections.Counter()

    def in_place(self, command, way):
        """The command with all words put in place at once; {site} in a Way is the folder."""
        need(all(word in command for word in way.instead), f"'{command}' lacks a word of {list(way.instead)}")
        words = {**self.instead, **way.instead}
        if words:
            order = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))
            command = re.sub(order, lambda match: words[match[0]], command)
        return (command + way.more).replace("{site}", str(self.folder))

    def execute(self, script, codes, told):
        done = subprocess.run(["bash", "-c", script], cwd=self.folder, capture_output=True, text=True, timeout=300,
                              env=self.environment, stdin=subprocess.DEVNULL)
        need(done.returncode in codes, f"{told}: exit code {done.returncode}\n{script}\n{done.stdout}{done.stderr}")
        return done.stdout

    def start(self, script, port, told):
        """A server of a block, once it answers."""
        log = open(self.folder / "server.log", "w")
        server = subprocess.Popen(["bash", "-c", script], cwd=self.folder, stdout=log, stderr=log, env=self.environment,
                                  stdin=subprocess.DEVNULL)
        for _ in range(600):
            with socket.socket() as one:
                if one.connect_ex(("127.0.0.1", port)) == 0:
                    return server
            need(server.poll() is None, f"{told}: the server ended\n{script}\n{(self.folder / 'server.log').read_text()}")
            time.sleep(0.05)
        need(False, f"{told}: the server does not answer\n{script}")

    def run_block(self, page, text, wanted):
        state, servers = [], []
        for command in commands(text):
            if not wanted(command):
                continue
            self.seen.add(command)
            told = f"{page}: {command}"
            reason = next((begin for begin in self.not_here if command.startswith(begin)), None)
            if command not in self.run and reason:
                self.seen.add(reason)
                self.counts["not here"] += 1
                print(f"{told}\n    not run here: {self.not_here[reason]}", flush=True)
                continue
            need(command in self.run, f"{page} has a command that is neither run nor listed: {command}")
            way = self.run[command]
            for form in forms(command):
                script = "\n".join(["set -e", *state, self.in_place(form, way)])
                if re.match(r"sealift-repo serve ", form):
                    port = int(re.search(r"127\.0\.0\.1:(\d+)|0\.0\.0\.0:(\d+)", script)[0].split(":")[1])
                    servers.append(self.start(script.replace("sealift-repo serve", "exec sealift-repo serve"), port, told))
                else:
                    self.execute(script, way.codes, told)
            if STATE.match(command):
                state.append(self.in_place(command, way).split(";")[0])
            self.counts["run"] += 1
            print(f"{told}\n    {'starts' if servers and form.startswith('sealift-repo serve') else 'does it'}", flush=True)
        for server in servers:
            server.terminate()
            need(server.wait(30) in (0, 143, -15), f"{page}: a server ended with {server.returncode}")

    def run_page(self, page, wanted=lambda command: True):
        for kind, text in blocks(page):
            if kind == "sh":
                self.run_block(page, text, wanted)

    def finish(self):
        gone = [command for command in (*self.run, *self.not_here) if command not in self.seen]
        need(not gone, f"no page has any more: {gone}")
        print(f"{self.counts['run']} commands do what the pages say, {self.counts['not here']} are not run here")
