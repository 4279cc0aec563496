// SPDX-License-Identifier: Apache-2.0
// start_process and two pipes; see child_process.hpp. Both outputs are read at once, so that neither fills up.
#include "sealift/bundle/host/child_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "bundle/core/unicode.hpp"
#include "bundle/host/start_process.hpp"
#include "sealift/bundle/core/file.hpp"
#include "sealift/bundle/host/interrupt.hpp"

namespace sealift::bundle {

using Clock = std::chrono::steady_clock;

namespace {

// What our end reads of one of the child's outputs.
class Tail {
 public:
  Tail(std::size_t keep, const std::string& program) : keep_(keep) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw_errno("a pipe cannot be made", program);
    read_ = Descriptor(ends[0]);
    write_ = Descriptor(ends[1]);
  }
  int child_end() const { return write_.get(); }
  void close_child_end() { write_ = Descriptor(); }

  int descriptor() const { return read_.get(); }  // -1 once it has ended, which poll ignores
  void read_some() {
    char piece[65536];
    const ssize_t count = ::read(read_.get(), piece, sizeof piece);
    if (count < 0 && errno == EINTR) return;
    if (count <= 0) {
      read_ = Descriptor();
      return;
    }
    text_.append(piece, static_cast<std::size_t>(count));
    if (text_.size() > 2 * keep_ + sizeof piece) cut();
  }
  // The last line so far, of what is not a whole one either; at most its end.
  std::string_view last_line() const {
    constexpr std::size_t kMost = 400;
    std::string_view rest = text_;
    if (const std::size_t end = rest.find_last_not_of(" \n\r\t"); end != rest.npos)
      rest = rest.substr(0, end + 1);
    else
      return {};
    if (const std::size_t begin = rest.find_last_of("\n\r"); begin != rest.npos) rest.remove_prefix(begin + 1);
    return rest.substr(rest.size() > kMost ? rest.size() - kMost : 0);
  }
  std::string take() {
    cut();
    return std::move(text_);
  }

 private:
  void cut() {
    if (text_.size() > keep_) text_.erase(0, text_.size() - keep_);
  }

  std::size_t keep_;
  Descriptor read_, write_;
  std::string text_;
};

// Until both have ended; false when the deadline comes first.
bool read_to_end(Tail& output, Tail& errors, std::optional<Clock::time_point> deadline,
                 const std::function<void(std::string_view)>& watch) {
  constexpr std::chrono::milliseconds kLook{500};  // a signal may come between our question and poll
  Clock::time_point watched = Clock::now();
  std::string line;  // of the stream that said something last
  while (output.descriptor() >= 0 || errors.descriptor() >= 0) {
    stop_if_interrupted();
    if (watch && Clock::now() - watched >= kLook) {
      watched = Clock::now();
      watch(line);
    }
    auto pause = kLook;
    if (deadline) pause = std::min(pause, std::chrono::ceil<std::chrono::milliseconds>(*deadline - Clock::now()));
    if (pause.count() <= 0) return false;
    pollfd waiting[2] = {{output.descriptor(), POLLIN, 0}, {errors.descriptor(), POLLIN, 0}};
    const int ready = ::poll(waiting, 2, static_cast<int>(pause.count()));
    if (ready < 0 && errno != EINTR) throw_errno("a program's output cannot be waited for", "poll");
    if (ready <= 0) continue;
    if (waiting[0].revents != 0) output.read_some();
    if (waiting[1].revents != 0) errors.read_some();
    if (watch) line = waiting[1].revents != 0 ? errors.last_line() : output.last_line();
  }
  return true;
}

// Fit for a message and for JSON.
std::string cleaned(std::string text) {
  std::size_t begin = 0;  // the cut may have gone through a letter
  while (begin < text.size() && begin < 4 && (static_cast<unsigned char>(text[begin]) & 0xc0) == 0x80) ++begin;
  text.erase(0, begin);
  const bool utf8 = is_utf8(text);
  for (char& c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f || (!utf8 && byte >= 0x80)) c = '?';
  }
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace

RunningChild::RunningChild(const Child& child, int input, int output, int errors) : contained_(child.contained) {
  pid_ = start_process({.arguments = child.arguments,
                        .environment = child.environment,
                        .streams = {input, output, errors},
                        .kept = child.kept,
                        .kin = contained_ ? Kin::Session : Kin::Ours,
                        .of_login = child.of_login,
                        .no_new_privileges = contained_,
                        .no_core = true,
                        .largest_file = child.largest_file,
                        .most_memory = child.most_memory});
  if (pid_ < 0) throw_errno("a program cannot be started", child.arguments.at(0));
}

RunningChild::~RunningChild() {
  if (pid_ <= 0) return;
  signal(SIGKILL);
  ::kill(pid_, SIGKILL);  // it may not have its own group yet
  ::waitpid(pid_, nullptr, 0);
}

int RunningChild::wait() {
  const int status = wait_for_process(pid_);
  pid_ = 0;
  return status;
}

bool RunningChild::ends_within(std::chrono::milliseconds patience) {
  constexpr std::chrono::milliseconds kLook{20};
  for (const auto deadline = Clock::now() + patience; Clock::now() < deadline; std::this_thread::sleep_for(kLook))
    if (::waitpid(pid_, nullptr, WNOHANG) == pid_) {
      pid_ = 0;
      return true;
    }
  return false;
}

void RunningChild::signal(int number) const {
  ::kill(contained_ ? -pid_ : pid_, number);
}

std::string ChildEnd::text(const Child& child) const {
  if (late)
    return "no end after " + std::to_string(child.patience.value_or(std::chrono::seconds()).count()) + " seconds";
  return (signal != 0 ? "signal " + std::to_string(signal) : "exit code " + std::to_string(exit_code)) + "\n" + errors;
}

ChildEnd run_child(const Child& child) {
  Tail output(child.keep_output, child.arguments.at(0)), errors(child.keep_errors, child.arguments[0]);
  const auto started = Clock::now();
  RunningChild running(child, -1, child.keep_output > 0 ? output.child_end() : -1, errors.child_end());
  output.close_child_end();
  errors.close_child_end();
  std::optional<Clock::time_point> deadline;
  if (child.patience) deadline = started + *child.patience;
  try {
    if (!read_to_end(output, errors, deadline, child.watch)) return {.late = true};
  } catch (const Interrupted&) {
    running.signal(SIGTERM);  // a signal that only we got ends it too, with time to remove what it made
    running.ends_within(std::chrono::seconds(3));  // else it is killed
    throw;
  }
  const int status = running.wait();
  stop_if_interrupted();  // what the terminal sent went to the child as well, and is why it ended
  ChildEnd end;
  if (WIFSIGNALED(status))
    end.signal = WTERMSIG(status);
  else
    end.exit_code = WEXITSTATUS(status);
  end.output = output.take();
  end.errors = cleaned(errors.take());
  end.milliseconds =
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - started).count());
  return end;
}

}  // namespace sealift::bundle
