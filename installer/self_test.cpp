// SPDX-License-Identifier: Apache-2.0
// The child gets an environment made here, so that nothing of the host (LD_LIBRARY_PATH, PYTHONPATH, PYTHONHOME) makes
// a broken generation look whole, and it dies with us.
#include "installer/self_test.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sealift/bundle/file.hpp"

namespace sealift::installer {

namespace fs = std::filesystem;
using bundle::Descriptor;
using bundle::Error;
using bundle::ErrorCode;
using Clock = std::chrono::steady_clock;

namespace {

constexpr std::size_t kTail = 4000;

// Ends its process group when it leaves scope, so that no child outlives a failure here.
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
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
  if (child < 0) bundle::throw_errno("the interpreter cannot be started", arguments[0]);
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

std::string import_statement(const std::vector<std::string>& modules) {
  std::string text = "import ";
  for (const std::string& module : modules) text += (&module == &modules.front() ? "" : ", ") + module;
  return text;
}

[[noreturn]] void fail(const std::string& command, std::string got) {
  throw Error(ErrorCode::SelfTest, {.what = "what was built does not work; the generation in use was not touched",
                                    .where = command,
                                    .expected = "the modules to be imported",
                                    .got = std::move(got),
                                    .next = "send this message to who packed the bundle"});
}

}  // namespace

SelfTest self_test(const bundle::Environment& environment, const fs::path& generation, const fs::path& scratch,
                   std::chrono::seconds patience) {
  SelfTest result{.imports = environment.imports};
  if (environment.imports.empty()) return result;
  const fs::path interpreter = environment.interpreter.below(generation);
  const std::string code = import_statement(environment.imports);
  const std::string command = environment.interpreter.text() + " -I -B -c \"" + code + "\"";
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) bundle::throw_errno("a pipe cannot be made", generation);
  Descriptor output(ends[0]), input(ends[1]);
  const auto started = Clock::now();
  Child child(start({interpreter.string(), "-I", "-B", "-c", code},
                    {"PATH=" + interpreter.parent_path().string() + ":/usr/bin:/bin", "HOME=" + scratch.string(),
                     "TMPDIR=" + scratch.string(), "LANG=C.UTF-8"},
                    input.get()));
  input = Descriptor();  // only the child writes
  const std::optional<std::string> tail = read_tail(output.get(), started + patience);
  if (!tail) fail(command, "no end after " + std::to_string(patience.count()) + " seconds");
  const int status = child.wait();
  if (WIFSIGNALED(status)) fail(command, "signal " + std::to_string(WTERMSIG(status)) + "\n" + *tail);
  if (WEXITSTATUS(status) != 0) fail(command, "exit code " + std::to_string(WEXITSTATUS(status)) + "\n" + *tail);
  result.milliseconds =
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - started).count());
  return result;
}

bundle::Json to_json(const SelfTest& test) {
  return {{"imports", test.imports}, {"milliseconds", test.milliseconds}};
}

SelfTest self_test_from(bundle::JsonObject object) {
  SelfTest test;
  for (const bundle::Json& module : object.array("imports", 1000))
    test.imports.push_back(module.is_string() ? module.get<std::string>() : "");
  test.milliseconds = object.integer("milliseconds");
  object.done();
  return test;
}

}  // namespace sealift::installer
