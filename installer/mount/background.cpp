// SPDX-License-Identifier: Apache-2.0
// The streams are let go only when all is well, so that an error is printed where somebody reads it.
#include "installer/mount/background.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "sealift/bundle/core/file.hpp"

namespace sealift::installer {

namespace {

[[noreturn]] void wait_for(pid_t child, int pipe) {
  char byte = 0;
  ssize_t count = 0;
  while ((count = ::read(pipe, &byte, 1)) < 0 && errno == EINTR) {
  }
  if (count == 1) ::_exit(0);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

}  // namespace

Background::Background() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) bundle::throw_errno("no process can be started", "pipe");
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) bundle::throw_errno("no process can be started", "fork");
  if (child > 0) {
    ::close(ends[1]);
    wait_for(child, ends[0]);
  }
  ::close(ends[0]);
  ::setsid();
  waiting_ = ends[1];
}

Background::~Background() {
  if (waiting_ >= 0) ::close(waiting_);
}

void Background::ready() {
  std::fflush(nullptr);
  const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (nowhere >= 0) ::dup2(nowhere, stream);
  if (nowhere > STDERR_FILENO) ::close(nowhere);
  (void)!::write(waiting_, "1", 1);
  ::close(waiting_);
  waiting_ = -1;
  (void)!::chdir("/");  // no folder of the caller's is in use
}

}  // namespace sealift::installer
