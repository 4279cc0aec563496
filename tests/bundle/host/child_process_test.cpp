// SPDX-License-Identifier: Apache-2.0
// Children: what they are given, what is kept of them, and how they end.
#include "sealift/bundle/host/child_process.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "bundle/host/start_process.hpp"
#include "sealift/bundle/core/file.hpp"
#include "sealift/bundle/host/interrupt.hpp"
#include "tests/support/left_out.hpp"
#include "tests/support/temp_dir.hpp"

using namespace sealift::bundle;
using namespace std::chrono_literals;

namespace {

Child shell(const std::string& script) {
  return {.arguments = {"/bin/sh", "-c", script}, .environment = {"PATH=/usr/bin:/bin"}, .keep_output = 1000};
}

// The number in `file`, which a child writes when it is ready.
pid_t wait_for_number(const std::filesystem::path& file) {
  std::error_code none;
  while (!std::filesystem::exists(file, none)) std::this_thread::yield();
  return std::stoi(read_text(file, 100));
}

bool is_gone(pid_t process) {
  for (int i = 0; i < 500; ++i) {
    const std::filesystem::path status = "/proc/" + std::to_string(process) + "/stat";
    std::ifstream file(status);
    std::string text;
    std::getline(file, text);
    // Dead, though the container's first process may not have waited for it yet.
    if (text.empty() || text.find(") Z ") != std::string::npos) return true;
    std::this_thread::sleep_for(10ms);
  }
  return false;
}

// A script that says who it is, in one step, and then stays.
std::string announce(const std::filesystem::path& file) {
  const std::string name = file.string();
  return "echo $$ > " + name + ".new; mv " + name + ".new " + name + "; ";
}

}  // namespace

TEST_CASE("a child gets the environment that it is given and nothing else, and an empty stdin") {
  ::setenv("SEALIFT_TEST_LEAK", "1", 1);
  Child child = shell("env; cat; echo end");
  child.environment.emplace_back("GIVEN=yes");
  const ChildEnd end = run_child(child);
  CHECK(end.good());
  CHECK(end.output.find("GIVEN=yes\n") != std::string::npos);
  CHECK(end.output.find("SEALIFT_TEST_LEAK") == std::string::npos);
  CHECK(end.output.ends_with("end\n"));
}

TEST_CASE("of a child's outputs the last bytes are kept, and stdout only when it is asked for") {
  Child child = shell("i=0; while [ $i -lt 30000 ]; do echo $i; echo $i >&2; i=$((i+1)); done");
  child.keep_output = 12;
  child.keep_errors = 6;
  const ChildEnd end = run_child(child);
  CHECK(end.output == "29998\n29999\n");
  CHECK(end.errors == "29999");
  child.keep_output = 0;
  CHECK(run_child(child).output.empty());
}

TEST_CASE("what a child writes to stderr is made fit for a message") {
  const ChildEnd end = run_child(shell("printf 'a\\tb\\033[1m\\377\\n\\n' >&2; exit 3"));
  CHECK(end.exit_code == 3);
  CHECK(end.errors == "a\tb?[1m?");
  CHECK(end.text({}) == "exit code 3\na\tb?[1m?");
}

TEST_CASE("a child's end is told: by a signal, by a program that is not there") {
  CHECK(run_child(shell("kill -9 $$")).signal == SIGKILL);
  const ChildEnd missing = run_child({.arguments = {"/nowhere/program"}, .environment = {}});
  CHECK(missing.exit_code == 127);
  CHECK(missing.errors == "No such file or directory");
}

TEST_CASE("a child ends behind a closed pipe, though we do not") {
  const auto before = ::signal(SIGPIPE, SIG_IGN);
  const ChildEnd end = run_child(shell("kill -PIPE $$; exit 3"));
  ::signal(SIGPIPE, before);
  CHECK(end.signal == SIGPIPE);
}

TEST_CASE("a child whose time is up is killed with everything that it started") {
  const sealift::test::TempDir dir;
  Child child = shell("(" + announce(dir / "inner") + "exec sleep 600) & wait");
  child.patience = 1s;
  const ChildEnd end = run_child(child);
  CHECK(end.late);
  CHECK(end.text(child) == "no end after 1 seconds");
  if (std::filesystem::exists(dir / "inner")) CHECK(is_gone(wait_for_number(dir / "inner")));
}

TEST_CASE("a child writes no file that is larger than it may be") {
  const sealift::test::TempDir dir;
  const std::string file = (dir / "file").string();
  Child child = shell("exec dd if=/dev/zero of=" + file + " bs=1000 count=1000 2> /dev/null");
  CHECK(run_child(child).good());
  child.largest_file = 100'000;
  const ChildEnd end = run_child(child);
  CHECK(end.signal == SIGXFSZ);
  CHECK(std::filesystem::file_size(file) == 100'000);
}

TEST_CASE("a child allocates no more memory than it may") {
  Child child = shell("exec dd if=/dev/zero of=/dev/null bs=300M count=1 2> /dev/null");
  CHECK(run_child(child).good());
  child.most_memory = 100'000'000;
  CHECK_FALSE(run_child(child).good());
}

TEST_CASE("a child dies with us") {
  const sealift::test::TempDir dir;
  const pid_t we = ::fork();
  if (we == 0) {
    run_child(shell(announce(dir / "child") + "exec sleep 600"));
    ::_exit(0);
  }
  const pid_t child = wait_for_number(dir / "child");
  ::kill(we, SIGKILL);
  ::waitpid(we, nullptr, 0);
  CHECK(is_gone(child));
}

TEST_CASE("an interrupt ends the child first, and gives it time to clean up") {
  for (const bool contained : {true, false}) {
    const sealift::test::TempDir dir;
    const pid_t we = ::fork();
    if (we == 0) {
      catch_interrupts();
      Child child = shell("trap 'echo gone > " + (dir / "cleaned").string() + "; exit 0' TERM; " +
                          announce(dir / "child") + "while :; do sleep 0.01; done");
      child.contained = contained;
      try {
        run_child(child);
      } catch (const Interrupted& stopped) {
        ::_exit(stopped.signal);
      }
      ::_exit(0);
    }
    const pid_t child = wait_for_number(dir / "child");
    ::kill(we, SIGINT);
    int status = 0;
    ::waitpid(we, &status, 0);
    CHECK(WEXITSTATUS(status) == SIGINT);
    CHECK(is_gone(child));
    CHECK(std::filesystem::exists(dir / "cleaned"));
  }
}

TEST_CASE("a child that goes on after an interrupt is killed within five seconds") {
  const sealift::test::TempDir dir;
  const pid_t we = ::fork();
  if (we == 0) {
    catch_interrupts();
    try {
      run_child(shell("trap '' TERM INT; " + announce(dir / "child") + "while :; do sleep 0.01; done"));
    } catch (const Interrupted& stopped) {
      ::_exit(stopped.signal);
    }
    ::_exit(0);
  }
  const pid_t child = wait_for_number(dir / "child");
  const auto began = std::chrono::steady_clock::now();
  ::kill(we, SIGINT);
  int status = 0;
  ::waitpid(we, &status, 0);
  CHECK(WEXITSTATUS(status) == SIGINT);
  CHECK(std::chrono::steady_clock::now() - began < 5s);
  CHECK(is_gone(child));
}

TEST_CASE("whoever watches a child is told the last line of what it said, whole or not, on either stream") {
  const sealift::test::TempDir dir;
  const auto until = [&](const char* name) {
    return "while [ ! -e " + (dir / name).string() + " ]; do sleep 0.02; done; ";
  };
  Child child =
      shell("echo first; echo '[2/72] nvcc' >&2; " + until("one") + "printf 'half a line'; " + until("two") + "true");
  std::vector<std::string> seen;
  child.watch = [&](std::string_view line) {
    if (seen.empty() ? line != "[2/72] nvcc" : line != "half a line" || seen.size() == 2) return;
    seen.emplace_back(line);
    write_text(dir / (seen.size() == 1 ? "one" : "two"), "");
  };
  CHECK(run_child(child).good());
  CHECK(seen == std::vector<std::string>{"[2/72] nvcc", "half a line"});
}

TEST_CASE("a child has nothing of the login's, whose keys, umask and terminal only a program that is named gets") {
  const pid_t login = ::fork();  // a login of its own, with a terminal, keys and a strict umask
  if (login == 0) {
    ::setsid();
    const int terminal = ::posix_openpt(O_RDWR);
    if (terminal < 0 || ::grantpt(terminal) != 0 || ::unlockpt(terminal) != 0) ::_exit(77);
    const int line = ::open(::ptsname(terminal), O_RDWR);  // which becomes this session's
    if (line < 0) ::_exit(77);
    const bool has_keys =
        ::syscall(SYS_keyctl, 1, nullptr) >= 0 && ::syscall(SYS_add_key, "user", "sealift-secret", "x", 1, -3) >= 0;
    ::umask(0077);
    const auto finds_key = [] { return ::syscall(SYS_keyctl, 10, -3, "user", "sealift-secret", 0) >= 0; };
    if (has_keys && !finds_key()) ::_exit(78);
    Child child = shell("umask; (exec 3<>/dev/tty) 2>/dev/null && echo terminal");
    const std::string contained = run_child(child).output;
    child.contained = false;
    const std::string plain = run_child(child).output;
    child.of_login = true;
    const std::string of_login = run_child(child).output;
    int keys = 0;
    for (const bool named : {false, true}) {
      const pid_t process = start_process(
          {.arguments = {"true"}, .environment = {"PATH=/usr/bin:/bin"}, .of_login = named, .last_step = finds_key});
      keys = 2 * keys + (wait_for_process(process) == 0 ? 1 : 0);
    }
    const bool right = contained == "0022\n" && plain == "0022\nterminal\n" && of_login == "0077\nterminal\n" &&
                       (!has_keys || keys == 1);
    ::_exit(right ? 0 : 1);
  }
  const int status = wait_for_process(login);
  if (WEXITSTATUS(status) == 77) return sealift::test::left_out("no terminals can be made here");
  CHECK(status == 0);
}
