// SPDX-License-Identifier: Apache-2.0
// The Python scripts that the carried interpreter runs in a self-check. In Python, since the installer is static and
// cannot load a library itself; they need only CPython 3.8.
#pragma once

namespace sealift::installer {

// LIST ANSWERS FIRST COUNT GENERATION: tries COUNT lines of LIST, which are "library PATH" or "program PATH". Programs
// of libexec are traced as sealift-start starts them: by the dynamic linker of lib/runtime, where there is one.
inline constexpr const char* kLoadScript = R"python(
import os, subprocess, sys
from importlib.machinery import ExtensionFileLoader, ModuleSpec

answers = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

def say(text):
    os.write(answers, (" ".join(text.split()) + "\n").encode("utf-8", "replace"))

def load(path):
    loader = ExtensionFileLoader("sealift_self_test", path)
    try:
        loader.create_module(ModuleSpec("sealift_self_test", loader, origin=path))
    except ImportError as error:  # loaded, and it is not the module that nobody is called
        if "does not define module export function" not in str(error):
            raise

lib = os.path.join(sys.argv[5], "lib")
runtime = os.path.join(lib, "runtime")
loader = next((os.path.join(runtime, name) for name in (os.listdir(runtime) if os.path.isdir(runtime) else ())
               if name.startswith("ld-linux-")), None)

def trace(path):
    # All symbols are bound, as `ldd -r` does: a program that is bound as it runs dies when it comes to one.
    variables = dict(os.environ, LD_TRACE_LOADED_OBJECTS="1", LD_WARN="1", LD_BIND_NOW="1",
                     LD_ORIGIN_PATH=os.path.dirname(path))
    command = [path]
    if os.path.dirname(path) == os.path.join(sys.argv[5], "libexec") and loader:
        command = [loader, "--library-path", runtime + ":" + lib, path]
    done = subprocess.run(command, env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=120)
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    for line in lines:
        if "not found" in line:
            name, arrow, _ = line.partition("=>")
            raise OSError(name.strip() + ": cannot open shared object file" if arrow else line)
    unbound = [line.strip() for line in lines if line.startswith("undefined symbol: ") or
               (line.startswith("symbol ") and " not defined in file " in line)]
    if unbound:
        more = " and %d more" % (len(unbound) - 3) if len(unbound) > 3 else ""
        raise OSError("; ".join(unbound[:3]) + more)
    if done.returncode != 0:
        raise OSError("its dynamic linker ended with %d: %s" % (done.returncode, " ".join(lines)[-500:]))

def preload(path):
    # Made for LD_PRELOAD, such as jemalloc: its thread-local data has room only in a process that starts with it.
    done = subprocess.run([sys.executable, "-I", "-c", ""], env=dict(os.environ, LD_PRELOAD=path),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
    said = done.stdout.decode("utf-8", "replace")
    if done.returncode != 0 or "cannot be preloaded" in said:
        raise OSError("not preloaded either: %d %s" % (done.returncode, said[-500:]))

def attempt(kind, path):
    try:
        try:
            (load if kind == "library" else trace)(path)
        except Exception as error:
            if "static TLS block" not in str(error):
                raise
            preload(path)
        return None
    except Exception as error:
        return str(error)

def answer(fault):
    say("good" if fault is None else "bad " + fault)

first, count = int(sys.argv[3]), int(sys.argv[4])
later = []
with open(sys.argv[1], encoding="utf-8") as file:
    for number, line in enumerate(file):
        if not first <= number < first + count:
            continue
        kind, path = line.rstrip("\n").split(" ", 1)
        say("begin %d" % number)
        fault = attempt(kind, path)
        answer(fault)
        if fault is not None and "undefined symbol" in fault:
            later.append((number, kind, path))
for number, kind, path in later:  # who needs it may have brought it in since, with what it takes from others
    say("begin %d" % number)
    answer(attempt(kind, path))
os._exit(0)  # destructors of libraries that nobody used tell nothing
)python";

// FOLDER: two ranks add up a tensor over Gloo on the loopback. Exit code 77: not possible here, and stderr says why.
inline constexpr const char* kAllReduceScript = R"python(
import datetime, os, socket, sys

try:
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname(), 5).close()
except OSError as error:
    print("the loopback is not up:", error, file=sys.stderr)
    os._exit(77)

child = os.fork()
rank = 0 if child else 1
if rank == 1:
    import ctypes
    ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG, SIGKILL: nobody is left behind when the installer is killed
os.environ["GLOO_SOCKET_IFNAME"] = "lo"
import torch
import torch.distributed as dist
if not dist.is_available() or not dist.is_gloo_available():
    print("this torch has no Gloo", file=sys.stderr)
    os._exit(77)
dist.init_process_group("gloo", init_method="file://" + sys.argv[1] + "/rendezvous", rank=rank, world_size=2,
                        timeout=datetime.timedelta(seconds=60))
tensor = torch.arange(1000.0) * (rank + 1)
dist.all_reduce(tensor)
good = torch.equal(tensor, torch.arange(1000.0) * 3)
dist.barrier()
if not good:
    print("rank", rank, "got", tensor[:8].tolist(), file=sys.stderr)
sys.stderr.flush()
if rank == 1:
    os._exit(0 if good else 1)
_, status = os.waitpid(child, 0)
os._exit(0 if good and status == 0 else 1)
)python";

// GENERATION LIST ANSWER FIRST STEP: compiles every STEPth module of LIST from the FIRST one on.
inline constexpr const char* kCompileScript = R"python(
import importlib.util, os, py_compile, sys

root, first, step = sys.argv[1], int(sys.argv[4]), int(sys.argv[5])
compiled = passed_over = 0
with open(sys.argv[2], encoding="utf-8") as file:
    for number, line in enumerate(file):
        if number % step != first:
            continue
        path = line.rstrip("\n")
        source = os.path.join(root, path)
        cache = importlib.util.cache_from_source(source)
        if os.path.lexists(cache):
            continue
        try:
            py_compile.compile(source, cache, path, doraise=True,
                               invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
        except (py_compile.PyCompileError, SyntaxError, ValueError, RecursionError):
            passed_over += 1
            continue
        os.chmod(cache, 0o444)
        os.chmod(os.path.dirname(cache), 0o755)
        compiled += 1
with open(sys.argv[3], "w") as file:
    file.write("%d %d\n" % (compiled, passed_over))
)python";

}  // namespace sealift::installer
