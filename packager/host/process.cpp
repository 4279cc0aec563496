// SPDX-License-Identifier: Apache-2.0
// Children through posix_spawn, with both outputs read at once so that neither can fill up; see process.hpp.
#include "packager/host/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>

#include "packager/host/interrupt.hpp"
#include "sealift/bundle/core/file.hpp"

namespace sealift::packager {

using bundle::Descriptor;
using bundle::Error;
using bundle::ErrorCode;

namespace {

struct Pipe {
  Descriptor read, write;
  Pipe() {
    int fds[2];
    if (::pipe2(fds, O_CLOEXEC) != 0) bundle::throw_errno("a pipe cannot be made", "process");
    read = Descriptor(fds[0]);
    write = Descriptor(fds[1]);
  }
};

std::vector<std::string> with_environment(const std::map<std::string, std::string>& added) {
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!added.contains(text.substr(0, text.find('=')))) out.push_back(text);
  }
  for (const auto& [key, value] : added) out.push_back(key + "=" + value);
  return out;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

// With its outputs read to their ends. A signal that only we got ends the program too, and then us.
void attend(pid_t child, Pipe& out, Pipe& err, ProcessResult& result) {
  pollfd fds[2] = {{out.read.get(), POLLIN, 0}, {err.read.get(), POLLIN, 0}};
  std::string* sinks[2] = {&result.out, &result.err};
  for (int open = 2; open > 0;) {
    const int ready = ::poll(fds, 2, 500);
    if (ready < 0 && errno != EINTR) bundle::throw_errno("poll failed", "process");
    try {
      stop_if_interrupted();
    } catch (...) {
      ::kill(child, SIGTERM);
      while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) continue;
      throw;
    }
    if (ready <= 0) continue;
    for (int i = 0; i < 2; ++i) {
      if (fds[i].fd < 0 || fds[i].revents == 0) continue;
      char buffer[65536];
      const ssize_t count = ::read(fds[i].fd, buffer, sizeof buffer);
      if (count > 0) {
        sinks[i]->append(buffer, static_cast<std::size_t>(count));
      } else if (count == 0 || errno != EINTR) {
        fds[i].fd = -1;
        --open;
      }
    }
  }
}

}  // namespace

ProcessResult run_process(const std::vector<std::string>& argv, const std::map<std::string, std::string>& environment) {
  Pipe out, err;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out.write.get(), 1);
  posix_spawn_file_actions_adddup2(&actions, err.write.get(), 2);
  std::vector<std::string> arguments = argv, variables = with_environment(environment);
  pid_t child = 0;
  const int fault = ::posix_spawnp(&child, argv.front().c_str(), &actions, nullptr, pointers(arguments).data(),
                                   pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  if (fault != 0)
    throw Error(ErrorCode::Missing,
                {.what = "a program cannot be started", .where = argv.front(), .got = std::strerror(fault)});
  out.write = Descriptor();
  err.write = Descriptor();
  ProcessResult result;
  attend(child, out, err, result);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) bundle::throw_errno("waiting for a program failed", argv.front());
  stop_if_interrupted();  // what the terminal sent went to the program as well, and is why it ended
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

std::string run_checked(const std::vector<std::string>& argv, const std::map<std::string, std::string>& environment) {
  ProcessResult result = run_process(argv, environment);
  if (result.exit_code == 0) return std::move(result.out);
  std::string command;
  for (const std::string& word : argv) command += (command.empty() ? "" : " ") + word;
  const std::string& said = result.err.empty() ? result.out : result.err;
  throw Error(ErrorCode::Io, {.what = "a program that is needed here failed",
                              .where = command.substr(0, 400),
                              .expected = "exit code 0",
                              .got = "exit code " + std::to_string(result.exit_code) + ": " +
                                     said.substr(said.size() > 2000 ? said.size() - 2000 : 0)});
}

std::filesystem::path find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  const std::string folders = path != nullptr ? path : "/usr/bin:/bin";
  for (std::size_t begin = 0; begin <= folders.size();) {
    const std::size_t end = std::min(folders.find(':', begin), folders.size());
    const std::filesystem::path candidate = std::filesystem::path(folders.substr(begin, end - begin)) / name;
    std::error_code unreadable;  // PATH may name folders that are not for this user
    if (std::filesystem::is_regular_file(candidate, unreadable) && ::access(candidate.c_str(), X_OK) == 0)
      return candidate;
    begin = end + 1;
  }
  return {};
}

}  // namespace sealift::packager
