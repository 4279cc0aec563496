# SPDX-License-Identifier: Apache-2.0
# A Python program of bench/ in a process that has imported torch already, which takes seconds of a processor: for
# compare_training.py where it is only tried, in small.
# Each is forked from a server that has imported, and has touched neither a GPU nor a thread. It is used as a subprocess.Popen
# with pipes. None outlives the server, and so its parent.
import ctypes
import functools
import importlib
import multiprocessing
import os
import signal
import subprocess
import sys

PR_SET_PDEATHSIG = 1
IMPORTS = ["torch.distributed.fsdp", "torch.utils.checkpoint", "torch._dynamo", "torch._functorch.aot_autograd"]


@functools.cache
def server():
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when torch is imported
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(IMPORTS)
    return context


def run(module, arguments, environment, incoming, outgoing):
    """What is in the new process: the program's main."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.environ.update(environment)
    os.dup2(incoming.fileno(), 0)
    os.dup2(outgoing.fileno(), 1)
    incoming.close()
    outgoing.close()
    sys.stdin, sys.stdout = open(0), open(1, "w")
    sys.argv = [module, *arguments]
    importlib.import_module(module).main()


class Forked:
    """`main()` of a module of this folder, with `arguments` and these variables besides."""

    def __init__(self, module, arguments, environment):
        self.args = [module, *arguments]
        its_in, our_out = multiprocessing.Pipe(duplex=False)
        our_in, its_out = multiprocessing.Pipe(duplex=False)
        self.process = server().Process(target=run, args=(module, arguments, dict(environment), its_in, its_out))
        self.process.start()
        self.pid = self.process.pid
        its_in.close()
        its_out.close()
        self.stdin, self.stdout = os.fdopen(os.dup(our_out.fileno()), "w"), os.fdopen(os.dup(our_in.fileno()))
        our_in.close()
        our_out.close()

    def poll(self):
        return self.process.exitcode

    def kill(self):
        self.process.kill()

    def wait(self, timeout=None):
        self.process.join(timeout)
        if self.process.exitcode is None:
            raise subprocess.TimeoutExpired(self.args, timeout)
        return self.process.exitcode
