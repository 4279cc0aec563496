// SPDX-License-Identifier: Apache-2.0
// Runs a program under ptrace(2) and accounts for every file that it, and whatever it starts, opened to read, executed
// or had mapped by the kernel: by the names that the kernel gives, so no program can be lied to about its own. As
// strace does, without strace, so that the check is never left out.
#pragma once

#include <fcntl.h>
#include <limits.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace sealift::test {

struct OpenedFiles {
  std::set<std::string> files;  // absolute, links resolved; no folders, no devices, nothing that was only written
  std::string output;           // and errors
  int status = 0;               // as wait(2) gives it
};

class OpenedFilesTracer {
 public:
  explicit OpenedFilesTracer(OpenedFiles& found) : found_(found) {}

  // Until the last of them has ended.
  void follow(pid_t first) {
    int status = 0;
    if (::waitpid(first, &status, __WALL) != first || !WIFSTOPPED(status)) throw std::runtime_error("not traced");
    constexpr long kOptions = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |
                              PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
    if (::ptrace(PTRACE_SETOPTIONS, first, nullptr, kOptions) != 0) throw std::runtime_error("not traced");
    calls_[first] = {};
    ::ptrace(PTRACE_SYSCALL, first, nullptr, nullptr);
    for (pid_t one; (one = ::waitpid(-1, &status, __WALL)) > 0;) {
      if (WIFSTOPPED(status)) {
        ::ptrace(PTRACE_SYSCALL, one, nullptr, static_cast<long>(signal_for(one, status)));
      } else if (one == first) {
        found_.status = status;
      }
    }
  }

 private:
  struct Call {
    std::uint64_t number = 0, flags = 0;
  };

  // What the program stopped for; returned is a signal that is its own.
  int signal_for(pid_t one, int status) {
    const int signal = WSTOPSIG(status);
    if (signal == (SIGTRAP | 0x80)) {
      note_call(one);
      return 0;
    }
    if (status >> 8 == (SIGTRAP | (PTRACE_EVENT_EXEC << 8))) note_mapped(one);
    if (signal == SIGTRAP) return 0;
    const bool begins = signal == SIGSTOP && calls_.try_emplace(one).second;  // each new process stops once
    return begins ? 0 : signal;
  }

  void note_call(pid_t one) {
    __ptrace_syscall_info info{};
    if (::ptrace(static_cast<__ptrace_request>(PTRACE_GET_SYSCALL_INFO), one, sizeof info, &info) <= 0)
      throw std::runtime_error("the kernel does not tell system calls");
    Call& call = calls_[one];
    if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
      call = {.number = info.entry.nr, .flags = info.entry.args[info.entry.nr == SYS_openat ? 2 : 1]};
      if (info.entry.nr == SYS_openat2) call.flags = O_RDONLY;  // behind a pointer: counted as read
    } else if (info.op == PTRACE_SYSCALL_INFO_EXIT && info.exit.is_error == 0 && opens(call)) {
      note(resolved("/proc/" + std::to_string(one) + "/fd/" + std::to_string(info.exit.rval)));
    }
  }

  static bool opens(const Call& call) {
    bool opening = call.number == SYS_openat || call.number == SYS_openat2;
#ifdef SYS_open
    opening = opening || call.number == SYS_open;
#endif
    return opening && (call.flags & O_ACCMODE) != O_WRONLY && (call.flags & O_PATH) == 0;
  }

  // The program and, where it names one, its loader: the kernel opens them without a call of anybody's.
  void note_mapped(pid_t one) {
    std::ifstream maps("/proc/" + std::to_string(one) + "/maps");
    for (std::string line; std::getline(maps, line);)
      if (const std::size_t path = line.find('/'); path != line.npos) note(line.substr(path));
  }

  static std::string resolved(const std::string& link) {
    char path[PATH_MAX];
    const ssize_t size = ::readlink(link.c_str(), path, sizeof path);
    struct stat status {};
    const bool file = size > 0 && ::stat(link.c_str(), &status) == 0 && S_ISREG(status.st_mode);
    return file ? std::string(path, static_cast<std::size_t>(size)) : std::string();
  }

  void note(const std::string& path) {
    if (!path.empty()) found_.files.insert(path);
  }

  OpenedFiles& found_;
  std::map<pid_t, Call> calls_;
};

// `words[0]` is a path; `environment` is all there is of it. `scratch` is a file for what it prints.
inline OpenedFiles files_opened_by(const std::vector<std::string>& words, const std::vector<std::string>& environment,
                                   const std::string& scratch) {
  const auto pointers = [](const std::vector<std::string>& texts) {
    std::vector<char*> all;
    for (const std::string& text : texts) all.push_back(const_cast<char*>(text.c_str()));
    all.push_back(nullptr);
    return all;
  };
  const std::vector<char*> argv = pointers(words), envp = pointers(environment);
  const pid_t child = ::fork();
  if (child == 0) {
    const int out = ::open(scratch.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (out < 0 || ::dup2(out, 1) < 0 || ::dup2(out, 2) < 0 || ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0)
      ::_exit(126);
    ::raise(SIGSTOP);
    ::execve(argv[0], argv.data(), envp.data());
    ::_exit(127);
  }
  OpenedFiles found;
  OpenedFilesTracer(found).follow(child);
  std::ifstream said(scratch);
  found.output.assign(std::istreambuf_iterator<char>(said), {});
  return found;
}

}  // namespace sealift::test
