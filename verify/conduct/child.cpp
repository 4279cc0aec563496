// SPDX-License-Identifier: Apache-2.0
// A child in a session of its own, with its outputs in files of a scratch folder.
// See child.hpp.
// Files instead of pipes: nobody has to read while it runs, and a child of the child that keeps one open holds nobody.
#include "verify/conduct/child.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <thread>

namespace sealift::verify {
namespace {

constexpr std::streamoff kKept = 1 << 20;

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

}  // namespace

ChildResult run_child(const std::vector<std::string>& argv, const std::vector<Variable>& variables,
                      std::chrono::seconds limit, const std::filesystem::path& folder,
                      const std::function<bool()>& kill_when, ChildHook* hook) {
  static std::atomic<int> number = 0;
  const auto base = folder / (".child-" + std::to_string(getpid()) + "-" + std::to_string(number++));
  const auto out_file = base.string() + ".out", err_file = base.string() + ".err";
  const int out = open(out_file.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
  const int err = open(err_file.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
  bundle::ProcessStart start{.arguments = argv,
                             .environment = bundle::environment_with(variables),
                             .streams = {-1, out, err},
                             .folder = folder.string(),
                             .kin = bundle::Kin::Session,
                             .complaint = std::nullopt};
  if (hook) start.last_step = [hook] { return hook->in_child(); };
  const pid_t child = out < 0 || err < 0 ? -1 : bundle::start_process(start);
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
