// SPDX-License-Identifier: Apache-2.0
// What a new process is given: streams, descriptors, signals, a folder, kin; and how it is found.
#include "bundle/host/start_process.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <thread>

#include "sealift/bundle/core/file.hpp"
#include "tests/support/temp_dir.hpp"

using namespace sealift::bundle;
using sealift::test::TempDir;

namespace {

// What the process printed into a file of `dir`, after its end.
std::string printed(const TempDir& dir, ProcessStart start, int* code = nullptr) {
  const std::string file = (dir / "printed").string();
  const Descriptor out(::open(file.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600));
  start.streams = {-1, out.get(), out.get()};
  const pid_t process = start_process(start);
  REQUIRE(process > 0);
  const int status = wait_for_process(process);
  if (code != nullptr) *code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return read_text(file, 1 << 20);
}

ProcessStart started_shell(const std::string& script) {
  return {.arguments = {"sh", "-c", script}, .environment = {"PATH=/usr/bin:/bin"}};
}

// The process's descriptors, and the lowest free one, by which it lists them.
const char* const kListed = "exec ls /proc/self/fd";

// As before Linux 5.9, for this process and its children.
void forget_close_range() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 436, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program = {4, filter};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

}  // namespace

TEST_CASE("a process gets no descriptor but its streams and those that are named, on old kernels too") {
  const TempDir dir;
  const Descriptor open(::open("/dev/null", O_RDONLY)), named(::open("/dev/null", O_RDONLY));
  REQUIRE(named);  // neither is closed by an exec
  CHECK(printed(dir, started_shell(kListed)) == "0\n1\n2\n3\n");
  ProcessStart with = started_shell(kListed);
  with.kept = {named.get()};
  const std::string with_named = "0\n1\n2\n3\n" + std::to_string(named.get()) + "\n";
  CHECK(printed(dir, with) == with_named);

  const pid_t old = ::fork();
  if (old == 0) {
    forget_close_range();
    const bool right = printed(dir, started_shell(kListed)) == "0\n1\n2\n3\n" && printed(dir, with) == with_named;
    ::_exit(right ? 0 : 1);
  }
  CHECK(wait_for_process(old) == 0);
}

TEST_CASE("streams may be each other's numbers, and none is /dev/null") {
  const TempDir dir;
  const std::string file = (dir / "out").string();
  const pid_t swapped = ::fork();
  if (swapped == 0) {
    ::dup2(::open(file.c_str(), O_CREAT | O_WRONLY, 0600), 2);
    ProcessStart start = started_shell("echo out; echo err >&2; cat");
    start.streams = {-1, 2, 1};  // crosswise
    ::_exit(WEXITSTATUS(wait_for_process(start_process(start))));
  }
  CHECK(wait_for_process(swapped) == 0);
  CHECK(read_text(file, 100) == "out\n");
}

TEST_CASE("a process begins with no signal blocked, and of those that we ignore keeps what nohup asks for") {
  const TempDir dir;
  const auto pipe = ::signal(SIGPIPE, SIG_IGN), hangup = ::signal(SIGHUP, SIG_IGN);
  const auto interrupt = ::signal(SIGINT, SIG_DFL), quit = ::signal(SIGQUIT, SIG_DFL);  // as no shell may have had it
  sigset_t usr1, before;
  ::sigemptyset(&usr1);
  ::sigaddset(&usr1, SIGUSR1);
  ::pthread_sigmask(SIG_BLOCK, &usr1, &before);
  const std::string said = printed(dir, started_shell("grep -E '^Sig(Blk|Ign)' /proc/self/status | tr -d '\\t'"));
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::signal(SIGPIPE, pipe);
  ::signal(SIGHUP, hangup);
  ::signal(SIGINT, interrupt);
  ::signal(SIGQUIT, quit);
  CHECK(said == "SigBlk:0000000000000000\nSigIgn:0000000000000001\n");
}

TEST_CASE("a process starts in its folder, as the leader of a group or of a session") {
  const TempDir dir;
  const std::string show = "pwd; set -- $(cat /proc/$$/stat); [ $1 = $5 ] && echo group; [ $1 = $6 ] && echo session";
  ProcessStart start = started_shell(show + "; :");
  start.folder = dir.path().string();
  const std::string folder = std::filesystem::canonical(dir.path()).string() + "\n";
  CHECK(printed(dir, start) == folder);
  start.kin = Kin::Group;
  CHECK(printed(dir, start) == folder + "group\n");
  start.kin = Kin::Session;
  CHECK(printed(dir, start) == folder + "group\nsession\n");
}

TEST_CASE("a program is found in PATH as a shell finds it, a script without a first line too") {
  const TempDir dir;
  sealift::test::write_file(dir / "bin/tool", "echo \"$0 $1\"\n");
  std::filesystem::permissions(dir / "bin/tool", std::filesystem::perms::owner_all);
  sealift::test::write_file(dir / "closed/tool", "");
  const std::string path = ::getenv("PATH");
  ::setenv("PATH", ((dir / "none").string() + ":" + (dir / "closed").string() + ":" + (dir / "bin").string()).c_str(),
           1);
  const std::string found = printed(dir, {.arguments = {"tool", "x"}, .environment = {}});
  int none = 0, refused = 0;
  const std::string missing = printed(dir, {.arguments = {"no-tool"}, .environment = {}}, &none);
  ::setenv("PATH", (dir / "closed").c_str(), 1);
  const std::string closed = printed(dir, {.arguments = {"tool"}, .environment = {}, .complaint = "tool: "}, &refused);
  const std::string silent = printed(dir, {.arguments = {"no-tool"}, .environment = {}, .complaint = std::nullopt});
  ::setenv("PATH", path.c_str(), 1);
  CHECK(found == (dir / "bin/tool").string() + " x\n");
  CHECK(none == 127);
  CHECK(missing == "No such file or directory\n");
  CHECK(refused == 126);
  CHECK(closed == "tool: Permission denied\n");
  CHECK(silent.empty());
}

TEST_CASE("the last step before the program can use our descriptors, and can call it off") {
  const TempDir dir;
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  ProcessStart start = started_shell("echo started");
  bool go_on = true;
  start.last_step = [&] { return ::write(ends[1], "x", 1) == 1 && go_on; };
  CHECK(printed(dir, start) == "started\n");
  char sent = 0;
  CHECK(::read(ends[0], &sent, 1) == 1);
  go_on = false;
  int code = 0;
  CHECK(printed(dir, start, &code).empty());
  CHECK(code == 126);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_CASE("processes are started by several threads at once, while others open what nobody is to get") {
  const TempDir dir;
  std::atomic<bool> over = false;
  std::atomic<int> wrong = 0;
  std::thread opening([&] {
    while (!over) ::close(::open("/dev/null", O_RDONLY));
  });
  std::vector<std::thread> starting;
  for (int thread = 0; thread < 4; ++thread)
    starting.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        const pid_t process = start_process(started_shell("[ $(ls /proc/self/fd | wc -l) = 4 ]"));
        if (process <= 0 || wait_for_process(process) != 0) ++wrong;
      }
    });
  for (std::thread& thread : starting) thread.join();
  over = true;
  opening.join();
  CHECK(wrong == 0);
}

TEST_CASE("an environment with changes has each name once, and not what was removed") {
  ::setenv("SEALIFT_TEST_KEPT", "kept=1", 1);
  ::setenv("SEALIFT_TEST_GONE", "1", 1);
  ::setenv("SEALIFT_TEST_CHANGED", "1", 1);
  const auto all = environment_with({{"SEALIFT_TEST_GONE", std::nullopt}, {"SEALIFT_TEST_CHANGED", "2"}});
  const auto count = [&](const char* text) { return std::count(all.begin(), all.end(), text); };
  CHECK(count("SEALIFT_TEST_KEPT=kept=1") == 1);
  CHECK(count("SEALIFT_TEST_CHANGED=2") == 1);
  CHECK(count("SEALIFT_TEST_CHANGED=1") == 0);
  CHECK(count("SEALIFT_TEST_GONE=1") == 0);
  for (const char* name : {"SEALIFT_TEST_KEPT", "SEALIFT_TEST_GONE", "SEALIFT_TEST_CHANGED"}) ::unsetenv(name);
}
