// SPDX-License-Identifier: Apache-2.0
// The real program as a child of a test, and other programs that are run to their end.
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "sealift/bundle/core/file.hpp"
#include "tests/support/temp_dir.hpp"

namespace sealift::test {

// A child process with stdout in a pipe and stderr in a file; ended when this is.
class ServerProcess {
 public:
  ServerProcess(const std::vector<std::string>& command, const std::filesystem::path& errors) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    output_ = bundle::Descriptor(ends[0]);
    const bundle::Descriptor inlet(ends[1]);
    std::vector<char*> words;
    for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    // No proxy, no configuration of the account that runs the tests.
    std::vector<std::string> environment = {"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL=C.UTF-8",
                                            "HOME=" + errors.parent_path().string()};
    std::vector<char*> variables;
    for (std::string& variable : environment) variables.push_back(variable.data());
    variables.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      const int log = ::open(errors.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
      ::dup2(inlet.get(), 1);
      ::dup2(log, 2);
      ::execvpe(words[0], words.data(), variables.data());
      ::_exit(127);
    }
  }
  ~ServerProcess() {
    if (pid_ > 0) ::kill(pid_, SIGKILL), wait();
  }

  std::string line() {
    std::string text;
    for (char c; ::read(output_.get(), &c, 1) == 1 && c != '\n';) text.push_back(c);
    return text;
  }
  std::string rest() {
    std::string text;
    char buffer[4096];
    for (ssize_t count; (count = ::read(output_.get(), buffer, sizeof buffer)) > 0;)
      text.append(buffer, static_cast<std::size_t>(count));
    return text;
  }
  pid_t pid() const { return pid_; }
  void send(int number) { ::kill(pid_, number); }
  // The exit status; 128 and more: a signal.
  int wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  bundle::Descriptor output_;
  pid_t pid_ = -1;
};

struct Ran {
  int status;
  std::string output, errors;
};

inline Ran run(const std::vector<std::string>& command) {
  const TempDir dir;
  ServerProcess child(command, dir / "errors");
  const std::string output = child.rest();
  const int status = child.wait();
  return {status, output, read_file(dir / "errors")};
}

inline std::vector<std::string> serve(const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {SEALIFT_REPO_PROGRAM, "serve", "--listen", "127.0.0.1:0"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

inline std::uint16_t port_of(const std::string& line) {
  REQUIRE(line.find("://127.0.0.1:") != std::string::npos);
  REQUIRE(line.starts_with("listening on http"));
  return static_cast<std::uint16_t>(std::stoi(line.substr(line.rfind(':') + 1)));
}

}  // namespace sealift::test
