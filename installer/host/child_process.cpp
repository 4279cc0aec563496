// SPDX-License-Identifier: Apache-2.0
// A process group of its own, so that nothing that the program starts outlives it; no core files, no new privileges.
#include "installer/host/child_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bundle/core/unicode.hpp"
#include "sealift/bundle/core/file.hpp"

namespace sealift::installer {

using bundle::Descriptor;
using Clock = std::chrono::steady_clock;

namespace {

constexpr std::size_t kTail = 4000;

// Ends its process group when it leaves scope, so that no child outlives a failure here.
class Running {
 public:
  explicit Running(pid_t pid) : pid_(pid) {}
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() {
    if (pid_ <= 0) return;
    ::kill(-pid_, SIGKILL);
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  int wait() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = 0;
    return status;
  }

 private:
  pid_t pid_;
};

// Only calls that are allowed between fork and exec.
[[noreturn]] void become(char* const* arguments, char* const* variables, int output, pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  const int nothing = ::open("/dev/null", O_RDWR);
  if (nothing >= 0) {
    ::dup2(nothing, STDIN_FILENO);
    ::dup2(nothing, STDOUT_FILENO);
  }
  ::dup2(output, STDERR_FILENO);
  const rlimit no_core = {0, 0};  // what crashes in here is told, not kept
  ::setrlimit(RLIMIT_CORE, &no_core);
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  ::execve(arguments[0], arguments, variables);
  const char* reason = std::strerror(errno);
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, reason, std::strlen(reason));
  ::_exit(127);
}

pid_t start(std::vector<std::string> arguments, std::vector<std::string> variables, int output) {
  std::vector<char*> argument_list, variable_list;
  for (std::string& argument : arguments) argument_list.push_back(argument.data());
  for (std::string& variable : variables) variable_list.push_back(variable.data());
  argument_list.push_back(nullptr);
  variable_list.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) bundle::throw_errno("a program cannot be started", arguments[0]);
  if (child == 0) become(argument_list.data(), variable_list.data(), output, parent);
  return child;
}

// The last bytes that come out of `input` until it is closed; nothing when `deadline` comes first.
std::optional<std::string> read_tail(int input, Clock::time_point deadline) {
  std::string tail;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd waiting{.fd = input, .events = POLLIN, .revents = 0};
    const int ready = left > 0 ? ::poll(&waiting, 1, static_cast<int>(left)) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return std::nullopt;
    char piece[4096];
    const ssize_t count = ::read(input, piece, sizeof piece);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return tail;
    tail.append(piece, static_cast<std::size_t>(count));
    if (tail.size() > kTail) tail.erase(0, tail.size() - kTail);
  }
}

// Fit for a message and for JSON: no control characters but line breaks, and UTF-8.
std::string cleaned(std::string text) {
  std::size_t begin = 0;  // the cut may have gone through a letter
  while (begin < text.size() && begin < 4 && (static_cast<unsigned char>(text[begin]) & 0xc0) == 0x80) ++begin;
  text.erase(0, begin);
  const bool utf8 = bundle::is_utf8(text);
  for (char& c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\n') || byte == 0x7f || (!utf8 && byte >= 0x80)) c = '?';
  }
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace

std::string ChildEnd::text(const Child& child) const {
  if (late) return "no end after " + std::to_string(child.patience.count()) + " seconds";
  return (signal != 0 ? "signal " + std::to_string(signal) : "exit code " + std::to_string(exit_code)) + "\n" + errors;
}

ChildEnd run_child(const Child& child) {
  const std::filesystem::path program = child.arguments.at(0);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) bundle::throw_errno("a pipe cannot be made", program);
  Descriptor output(ends[0]), input(ends[1]);
  const auto started = Clock::now();
  Running running(start(child.arguments,
                        {"PATH=" + program.parent_path().string() + ":/usr/bin:/bin", "HOME=" + child.scratch.string(),
                         "TMPDIR=" + child.scratch.string(), "LANG=C.UTF-8"},
                        input.get()));
  input = Descriptor();  // only the child writes
  const std::optional<std::string> tail = read_tail(output.get(), started + child.patience);
  ChildEnd end{.late = !tail};
  if (end.late) return end;
  const int status = running.wait();
  if (WIFSIGNALED(status))
    end.signal = WTERMSIG(status);
  else
    end.exit_code = WEXITSTATUS(status);
  end.errors = cleaned(*tail);
  end.milliseconds =
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - started).count());
  return end;
}

}  // namespace sealift::installer
