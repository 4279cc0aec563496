// SPDX-License-Identifier: Apache-2.0
// All that a process in the sandbox has of the packer's: each thing that Linux hands to a child is listed here, and
// what is in no list fails the test.
#include "packager/host/sandbox.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <set>

#include "bundle/core/json.hpp"
#include "sealift/bundle/core/file.hpp"
#include "tests/support/left_out.hpp"
#include "tests/support/temp_dir.hpp"

using namespace sealift;
using namespace sealift::packager;
using namespace sealift::test;
namespace fs = std::filesystem;

namespace {

constexpr long kSessionKeyring = -3, kUserKeyring = -4;

long keyctl(long what, long a = 0, long b = 0, long c = 0, long d = 0) {
  return ::syscall(SYS_keyctl, what, a, b, c, d);
}
long add_key(const char* name, long keyring) {
  return ::syscall(SYS_add_key, "user", name, "a secret", 8, keyring);
}

// Prints what it has, as one JSON object.
constexpr const char* kAsk = R"py(
import ctypes, fcntl, glob, json, os, resource, signal, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
arm = os.uname().machine == "aarch64"
ADD, REQUEST, KEYCTL = (217, 218, 219) if arm else (248, 249, 250)
def call(*arguments):
    ctypes.set_errno(0)
    result = libc.syscall(*[ctypes.c_long(a) if isinstance(a, int) else a for a in arguments])
    return result if result >= 0 else -ctypes.get_errno()
def reads(path):
    try:
        with open(path, "rb") as file:
            return file.read().decode(errors="replace")
    except OSError as error:
        return "no: " + error.strerror
def keys():
    found = {}
    for where in (-1, -2, -3, -4, -5):
        found["search %d" % where] = call(KEYCTL, 10, where, b"user", b"sealift-secret", 0)
    found["request"] = call(REQUEST, b"user", b"sealift-secret", None, 0)
    found["add"] = call(ADD, b"user", b"left-behind", b"x", 1, -4)
    if not arm:
        found["join, as x32 calls it"] = call(0x40000000 + KEYCTL, 1, None)
    for name, serial in (("session", int(sys.argv[1])), ("user's", int(sys.argv[2])), ("key", int(sys.argv[3]))):
        memory = ctypes.create_string_buffer(64)
        found["read the " + name] = call(KEYCTL, 11, serial, memory, 64)
        found["link the " + name] = call(KEYCTL, 8, serial, -3)
        found["describe the " + name] = call(KEYCTL, 6, serial, memory, 64)
    return found
status = dict(line.split(":\t", 1) for line in reads("/proc/self/status").splitlines() if ":\t" in line)
try:
    terminal = "opened %d" % os.open("/dev/tty", os.O_RDWR)
except OSError as error:
    terminal = "no"
umask = os.umask(0)
print(json.dumps({
    "descriptors": {int(n): os.readlink("/proc/self/fd/" + n) for n in os.listdir("/proc/self/fd")
                    if os.path.exists("/proc/self/fd/" + n) or os.path.islink("/proc/self/fd/" + n)},
    "keys": keys(), "/proc/keys": reads("/proc/keys"), "/proc/key-users": reads("/proc/key-users"),
    "variables": dict(os.environ), "umask": umask,
    "core": resource.getrlimit(resource.RLIMIT_CORE),
    "blocked": status["SigBlk"], "ignored": status["SigIgn"],
    "capabilities": {name: status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")},
    "bounding": status["CapBnd"],
    "no new privileges": status["NoNewPrivs"], "filter": status["Seccomp"],
    "namespaces": {os.path.basename(path): os.readlink(path) for path in glob.glob("/proc/self/ns/*")},
    "cgroup": reads("/proc/self/cgroup"),
    "terminal": terminal, "session is its own": os.getsid(0) != 0 or os.getsid(0) == 0 and os.getpid() > 0,
    "folder": os.getcwd(), "root": sorted(os.listdir("/")), "processes": [p for p in os.listdir("/proc") if p.isdigit()],
    "interfaces": [name for _, name in socket.if_nameindex()],
}))
)py";

struct Outside {
  TempDir dir;
  bundle::Descriptor file, folder, ours, theirs;
  long session = 0, user = 0, key = 0;

  // What a careless shell, a service manager or a login hands to the packer.
  Outside() {
    write_file(dir / "secret", "secret");
    fs::permissions(dir / "secret", fs::perms(0600));
    file = bundle::Descriptor(::open((dir / "secret").c_str(), O_RDONLY));
    folder = bundle::Descriptor(::open("/root", O_RDONLY | O_DIRECTORY));
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    ours = bundle::Descriptor(ends[0]);
    theirs = bundle::Descriptor(ends[1]);
    session = keyctl(1, 0);  // KEYCTL_JOIN_SESSION_KEYRING: one of our own, so that the login's is left alone
    if (session >= 0) key = add_key("sealift-secret", kSessionKeyring);
    if (session >= 0) user = keyctl(0, kUserKeyring, 0);  // KEYCTL_GET_KEYRING_ID
    ::setenv("SECRET", "secret", 1);
    ::signal(SIGUSR1, SIG_IGN);
    sigset_t some;
    ::sigemptyset(&some);
    ::sigaddset(&some, SIGUSR2);
    ::pthread_sigmask(SIG_BLOCK, &some, nullptr);
    ::umask(0077);
  }
  ~Outside() {
    ::unsetenv("SECRET");
    ::signal(SIGUSR1, SIG_DFL);
    sigset_t some;
    ::sigemptyset(&some);
    ::sigaddset(&some, SIGUSR2);
    ::pthread_sigmask(SIG_UNBLOCK, &some, nullptr);
    ::umask(0022);
  }
};

bool no_sandbox() {
  try {
    require_sandbox("");
  } catch (const bundle::Error& error) {
    left_out(error.what());
    return true;
  }
  return !fs::exists("/usr/bin/python3.11") && (left_out("needs python3.11"), true);
}

}  // namespace

TEST_CASE("a process in the sandbox inherits what is listed here and nothing else") {
  if (no_sandbox()) return;
  const Outside outside;
  const ProcessResult ran =
      run_sandboxed({.command = {"/usr/bin/python3.11", "-I", "-c", kAsk, std::to_string(outside.session),
                                 std::to_string(outside.user), std::to_string(outside.key)},
                     .environment = {{"PATH", "/usr/bin:/bin"}}});
  REQUIRE_MESSAGE(ran.exit_code == 0, ran.err);
  const bundle::Json has = bundle::parse_json(ran.out, "the sandbox");
  INFO(ran.out);

  // Its streams, and the folder that lists them.
  const bundle::Json& descriptors = has.at("descriptors");
  CHECK(descriptors.size() <= 4);
  CHECK(descriptors.at("0") == "/dev/null");
  for (const auto& [number, target] : descriptors.items()) {
    const auto text = target.get<std::string>();
    CHECK((number == "0" || text.starts_with("pipe:") || text.starts_with("/proc/")));
  }
  // No key of the login's, of the user's, or by its number; and none can be left behind for later.
  if (outside.session < 0)
    left_out("this kernel has no keys");
  else
    for (const auto& [what, result] : has.at("keys").items()) {
      CAPTURE(what);
      CHECK(result.get<long>() < 0);
    }
  for (const char* list : {"/proc/keys", "/proc/key-users"}) {
    const auto text = has.at(list).get<std::string>();
    CHECK((text.empty() || text.starts_with("no: ")));
  }
  const bundle::Json variables = has.at("variables");
  for (const auto& [name, value] : variables.items()) {
    CAPTURE(name);
    CHECK(std::set<std::string>{"PATH", "PWD", "LC_CTYPE"}.contains(name));
  }
  CHECK(has.at("umask") == 022);
  CHECK(has.at("core") == bundle::Json::array({0, 0}));
  CHECK(has.at("blocked") == "0000000000000000");
  // SIGPIPE and SIGXFSZ are Python's own.
  CHECK((std::stoul(has.at("ignored").get<std::string>(), nullptr, 16) & ~0x1001000UL) == 0);
  for (const auto& [name, value] : has.at("capabilities").items()) {
    CAPTURE(name);
    CHECK(value == "0000000000000000");
  }
  CHECK(has.at("no new privileges") == "1");
  CHECK(has.at("filter") == "2");
  for (const auto& [name, target] : has.at("namespaces").items()) {
    CAPTURE(name);
    if (name.starts_with("time")) continue;  // clocks are the machine's
    CHECK(target.get<std::string>() != fs::read_symlink("/proc/self/ns/" + name).string());
  }
  CHECK(has.at("terminal") == "no");
  CHECK(has.at("folder") == "/");
  CHECK(has.at("interfaces") == bundle::Json::array({"lo"}));
  CHECK(has.at("processes").size() <= 2);
  const auto cgroup = has.at("cgroup").get<std::string>();
  CHECK((cgroup.find("0::/\n") != std::string::npos || cgroup.starts_with("no: ") || cgroup.empty()));
}
