// SPDX-License-Identifier: Apache-2.0
// A child in a session of its own, with its outputs in files of a scratch folder.
// See child.hpp.
// Files instead of pipes: nobody has to read while it runs, and a child of the child that keeps one open holds nobody.
#include "verify/conduct/child.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <stdexcept>
#include <thread>

namespace sealift::verify {
namespace {

constexpr std::streamoff kKept = 1 << 20;

std::vector<std::string> environment_with(const std::vector<Variable>& variables) {
  std::map<std::string, std::string> all;
  for (char** variable = environ; *variable; ++variable) {
    const std::string text = *variable;
    if (const auto equals = text.find('='); equals != std::string::npos) {
      all[text.substr(0, equals)] = text.substr(equals + 1);
    }
  }
  for (const auto& [name, value] : variables) {
    if (value) {
      all[name] = *value;
    } else {
      all.erase(name);
    }
  }
  std::vector<std::string> result;
  for (const auto& [name, value] : all) result.push_back(name + '=' + value);
  return result;
}

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const auto& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

/// The last part of a file, which is then removed.
std::string take(const std::filesystem::path& file) {
  std::string text;
  {
    std::ifstream in(file, std::ios::binary | std::ios::ate);
    const auto size = static_cast<std::streamoff>(in.tellg());
    const auto kept = std::min(size, kKept);
    if (kept > 0) {
      in.seekg(size - kept);
      text.resize(static_cast<std::size_t>(kept));
      in.read(text.data(), kept);
      text.resize(static_cast<std::size_t>(in.gcount()));
    }
  }
  std::error_code ignored;
  std::filesystem::remove(file, ignored);
  return text;
}

/// The child's part between fork and exec: only what may be called there.
[[noreturn]] void become(const char* program, char** argv, char** environment, const char* folder, int out, int err,
                         pid_t parent, ChildHook* hook) {
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int nothing = open("/dev/null", O_RDONLY);
  if (getppid() != parent || nothing < 0 || dup2(nothing, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0 ||
      chdir(folder) != 0 || (hook && !hook->in_child())) {
    _exit(126);
  }
  execvpe(program, argv, environment);
  _exit(127);
}

}  // namespace

ChildResult run_child(const std::vector<std::string>& argv, const std::vector<Variable>& variables,
                      std::chrono::seconds limit, const std::filesystem::path& folder,
                      const std::function<bool()>& kill_when, ChildHook* hook) {
  static std::atomic<int> number = 0;
  const auto base = folder / (".child-" + std::to_string(getpid()) + "-" + std::to_string(number++));
  const auto out_file = base.string() + ".out", err_file = base.string() + ".err";
  const int out = open(out_file.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
  const int err = open(err_file.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
  const auto environment = environment_with(variables);
  auto arguments = pointers_to(argv), pointers = pointers_to(environment);
  const pid_t parent = getpid();
  const pid_t child = out < 0 || err < 0 ? -1 : fork();
  if (child == 0) become(arguments[0], arguments.data(), pointers.data(), folder.c_str(), out, err, parent, hook);
  const auto why = std::string(std::strerror(errno));
  if (out >= 0) close(out);
  if (err >= 0) close(err);
  if (child < 0) {
    throw std::runtime_error("cannot start " + argv[0] + " in " + folder.string() + ": " + why);
  }
  if (hook) hook->started(child);
  ChildResult result;
  const auto end = std::chrono::steady_clock::now() + limit;
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (!result.timed_out && std::chrono::steady_clock::now() >= end) {
      result.timed_out = true;
      kill(-child, SIGKILL);
    }
    if (kill_when && kill_when()) kill(-child, SIGKILL);
    if (hook) {
      hook->wait_a_moment();
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  if (hook) hook->ended();
  kill(-child, SIGKILL);  // what it left behind
  result.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  result.out = take(out_file);
  result.err = take(err_file);
  if (result.code == 127 && result.err.empty()) throw std::runtime_error("there is no program " + argv[0]);
  return result;
}

}  // namespace sealift::verify
