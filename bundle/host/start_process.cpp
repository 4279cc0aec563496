// SPDX-License-Identifier: Apache-2.0
// fork and exec, since only between the two a child can be told to die with us; see start_process.hpp.
#include "bundle/host/start_process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>

#include "bundle/core/text_parts.hpp"
#include "bundle/host/kept_descriptors.hpp"

namespace sealift::bundle {
namespace {

constexpr int kReasons = 134;  // numbers of errors

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (const std::string& text : texts) list.push_back(const_cast<char*>(text.c_str()));  // exec does not write them
  list.push_back(nullptr);
  return list;
}

// The paths that exec is to try for a name, as execvp does.
std::vector<std::string> places_of(const std::string& name) {
  if (name.find('/') != std::string::npos) return {name};
  const char* path = std::getenv("PATH");
  const std::string folders = path != nullptr ? path : "/bin:/usr/bin";
  std::vector<std::string> places;
  for (const std::string_view folder : split(folders, ':'))
    places.push_back((folder.empty() ? "." : std::string(folder)) + "/" + name);
  return places;
}

// What the kernel says, by errno: strerror takes locks, which another thread may have held when we forked.
const std::vector<std::string>& reasons() {
  static const std::vector<std::string> texts = [] {
    std::vector<std::string> made;
    for (int number = 0; number < kReasons; ++number) made.push_back(std::strerror(number) + std::string("\n"));
    return made;
  }();
  return texts;
}

// Everything that the child needs, made before the fork.
struct Prepared {
  explicit Prepared(const ProcessStart& start)
      : start(start),
        places(places_of(start.program.empty() ? start.arguments.at(0) : start.program)),
        arguments(pointers(start.arguments)),
        variables(pointers(start.environment)),
        script(arguments),
        texts(reasons()),
        parent(::getpid()) {
    static char shell[] = "/bin/sh";
    script.insert(script.begin(), shell);
  }

  const ProcessStart& start;
  std::vector<std::string> places;
  std::vector<char*> arguments, variables;
  std::vector<char*> script;  // of a file without "#!", as execvp starts it: its path goes to [1]
  const std::vector<std::string>& texts;
  pid_t parent;
};

// From here on: only what may be called between fork and exec.

bool take_streams(const std::array<int, 3>& streams) {
  int ends[3];
  for (std::size_t i = 0; i < 3; ++i) {  // above 2 first, since one may be the number that another is to get
    const int end = streams[i] >= 0 ? streams[i] : ::open("/dev/null", O_RDWR | O_CLOEXEC);
    ends[i] = end < 0 ? -1 : ::fcntl(end, F_DUPFD_CLOEXEC, 3);
    if (ends[i] < 0 && streams[i] >= 0 && errno != EBADF) return false;  // one that is closed here stays so
  }
  for (int i = 0; i < 3; ++i) {
    if (ends[i] < 0) continue;  // a system without /dev/null
    if (::dup2(ends[i], i) < 0) return false;
  }
  return true;
}

// A session keyring of its own, in place of the login's: keys there are anybody's who inherits it. Where the kernel has
// none, or has them forbidden to us, the child has none either. False: the login's would be left.
bool leave_keyring() {
  constexpr long kJoin = 1;  // KEYCTL_JOIN_SESSION_KEYRING, with a name for none
  return ::syscall(SYS_keyctl, kJoin, nullptr) >= 0 || (errno != EDQUOT && errno != ENOMEM && errno != EINTR);
}

void reset_signals() {
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction action {};
    if (::sigaction(number, nullptr, &action) != 0 || action.sa_handler == SIG_DFL) continue;
    const bool wanted = number == SIGHUP || number == SIGINT || number == SIGQUIT;
    if (wanted && action.sa_handler == SIG_IGN) continue;
    action = {};
    action.sa_handler = SIG_DFL;
    ::sigaction(number, &action, nullptr);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
}

void say(const std::string& text) {
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

[[noreturn]] void give_up(const Prepared& prepared, int error, int code) {
  if (prepared.start.complaint) {
    say(*prepared.start.complaint);
    say(prepared.texts[error < kReasons ? static_cast<std::size_t>(error) : 0]);
  }
  ::_exit(code);
}

// Tries each place, as execvp does: what may not be run is passed over, and told when nothing else is found.
int execute(Prepared& prepared) {
  int refused = 0;
  for (const std::string& place : prepared.places) {
    ::execve(place.c_str(), prepared.arguments.data(), prepared.variables.data());
    if (errno == ENOEXEC) {
      prepared.script[1] = const_cast<char*>(place.c_str());
      ::execve(prepared.script[0], prepared.script.data(), prepared.variables.data());
      return ENOEXEC;
    }
    if (errno == EACCES)
      refused = EACCES;
    else if (errno != ENOENT && errno != ENOTDIR && errno != ESTALE && errno != ENODEV && errno != ETIMEDOUT)
      return errno;
  }
  return refused != 0 ? refused : ENOENT;
}

[[noreturn]] void become(Prepared& prepared) {
  const ProcessStart& start = prepared.start;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // which a program that is stopped does not outlive either
  if (::getppid() != prepared.parent) ::_exit(127);
  if (start.kin == Kin::Session) ::setsid();
  if (start.kin == Kin::Group) ::setpgid(0, 0);
  if (!take_streams(start.streams)) ::_exit(126);
  if (!start.of_login) {
    if (!leave_keyring()) give_up(prepared, errno, 126);
    ::umask(022);
  }
  close_others_on_exec(start.kept);
  const rlimit no_core = {0, 0};
  if (start.no_core) ::setrlimit(RLIMIT_CORE, &no_core);
  const rlimit files = {start.largest_file, start.largest_file};
  if (start.largest_file > 0) ::setrlimit(RLIMIT_FSIZE, &files);
  const rlimit memory = {start.most_memory, start.most_memory};
  if (start.most_memory > 0) ::setrlimit(RLIMIT_DATA, &memory);
  if (start.no_new_privileges) ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (!start.folder.empty() && ::chdir(start.folder.c_str()) != 0) give_up(prepared, errno, 126);
  reset_signals();
  if (start.last_step && !start.last_step()) ::_exit(126);
  const int error = execute(prepared);
  give_up(prepared, error, error == ENOENT ? 127 : 126);
}

}  // namespace

std::vector<std::string> environment_with(const std::vector<Variable>& changes) {
  std::map<std::string, std::string> all;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos) all.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  for (const auto& [name, value] : changes) {
    if (value)
      all[name] = *value;
    else
      all.erase(name);
  }
  std::vector<std::string> variables;
  for (const auto& [name, value] : all) variables.push_back(name + '=' + value);
  return variables;
}

pid_t start_process(const ProcessStart& start) {
  Prepared prepared(start);
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // or a handler of ours could run in the child
  const pid_t process = ::fork();
  if (process == 0) become(prepared);
  const int error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return process;
}

int wait_for_process(pid_t process) {
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) continue;
  return status;
}

int become_program(const std::vector<std::string>& arguments) {
  ::execvp(arguments.at(0).c_str(), pointers(arguments).data());
  return errno;
}

}  // namespace sealift::bundle
