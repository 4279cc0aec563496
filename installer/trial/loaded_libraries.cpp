// SPDX-License-Identifier: Apache-2.0
// The child reports on stderr that it has imported everything and then waits for the end of its stdin: it does not
// change while its maps are read, and it ends by itself when this process ends.
#include "installer/trial/loaded_libraries.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <set>

#include "sealift/bundle/core/file.hpp"
#include "sealift/bundle/host/child_process.hpp"
#include "sealift/bundle/native/system_libraries.hpp"

namespace sealift::installer {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

namespace {

constexpr std::string_view kReady = "\nsealift: all imported\n";
constexpr std::size_t kLastWords = 2000;

class Interpreter {
 public:
  Interpreter(const fs::path& program, const std::string& code) {
    int in[2], err[2];
    if (::pipe2(in, O_CLOEXEC) != 0) bundle::throw_errno("a pipe cannot be made", program);
    bundle::Descriptor stdin_read(in[0]);
    to_it_ = bundle::Descriptor(in[1]);
    if (::pipe2(err, O_CLOEXEC) != 0) bundle::throw_errno("a pipe cannot be made", program);
    from_it_ = bundle::Descriptor(err[0]);
    const bundle::Descriptor stderr_write(err[1]);
    child_.emplace(bundle::Child{.arguments = {program.string(), "-I", "-B", "-c", code},
                                 .environment = {"PATH=" + program.parent_path().string() + ":/usr/bin:/bin", "HOME=/",
                                                 "LANG=C.UTF-8"}},
                   stdin_read.get(), -1, stderr_write.get());
  }

  pid_t pid() const { return child_->pid(); }

  // Empty once it has imported everything; otherwise the end of what it wrote.
  std::string wait_until_ready(Clock::time_point deadline) {
    std::string text;
    for (;;) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
      pollfd waiting{.fd = from_it_.get(), .events = POLLIN, .revents = 0};
      const int ready = left > 0 ? ::poll(&waiting, 1, static_cast<int>(std::min<long>(left, 1'000'000))) : 0;
      if (ready < 0 && errno == EINTR) continue;
      if (ready <= 0) return "it did not import everything in time\n" + text;
      char piece[4096];
      const ssize_t count = ::read(from_it_.get(), piece, sizeof piece);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return text.empty() ? "it ended without a word" : text;
      text.append(piece, static_cast<std::size_t>(count));
      if (text.find(kReady) != std::string::npos) return "";
      if (text.size() > kLastWords) text.erase(0, text.size() - kLastWords);
    }
  }

 private:
  std::optional<bundle::RunningChild> child_;
  bundle::Descriptor to_it_;
  bundle::Descriptor from_it_;
};

// Paths of what a process maps to run it: the lines of /proc/PID/maps with x and a path.
std::set<std::string> executable_maps(pid_t pid) {
  std::set<std::string> paths;
  std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
  for (std::string line; std::getline(maps, line);) {
    const std::size_t mode = line.find(' '), slash = line.find('/');
    if (mode == std::string::npos || slash == std::string::npos || line.compare(mode + 3, 1, "x") != 0) continue;
    const std::string path = line.substr(slash);
    // Memory without a file, which code that is made at run time lies in.
    if (path.starts_with("/memfd:") || path.starts_with("/dev/zero") || path.starts_with("/SYSV")) continue;
    paths.insert(path);
  }
  return paths;
}

}  // namespace

LoadedLibraries loaded_libraries(const fs::path& generation, const std::string& interpreter,
                                 const std::vector<std::string>& imports, std::chrono::seconds patience) {
  LoadedLibraries result;
  std::error_code error;
  const std::string root = fs::canonical(generation, error).string();  // as the kernel names it
  std::string code;
  for (const std::string& module : imports) code += "import " + module + "\n";
  code += "import sys\nsys.stderr.write('\\nsealift: all imported\\n')\nsys.stderr.flush()\nsys.stdin.read()\n";
  Interpreter child(generation / interpreter, code);
  result.fault = child.wait_until_ready(Clock::now() + patience);
  if (!result.fault.empty()) return result;
  for (const std::string& path : executable_maps(child.pid())) {
    const std::string name = path.substr(path.rfind('/') + 1);
    if (path.starts_with(root + "/"))
      result.inside.push_back(path);
    else if (bundle::may_come_from_target(name))
      result.allowed.push_back(path);
    else
      result.outside.push_back(path);
  }
  return result;
}

}  // namespace sealift::installer
