// SPDX-License-Identifier: Apache-2.0
// The watcher: asked about a call, it looks at the caller's memory and answers.
// See watch.hpp.
// A call to this machine or to the site's list goes on as if nobody had looked; every other is listed and refused.
#include "verify/egress/watch.hpp"

#include "verify/egress/call_filter.hpp"
#include "verify/egress/caller.hpp"
#include "verify/egress/python_stack.hpp"
#include "verify/verdict/json.hpp"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>

namespace sealift::verify {
namespace {

constexpr std::size_t kMostAttempts = 200;
constexpr std::uint16_t kDns = 53;
constexpr auto kGrace = std::chrono::seconds(5);

/// What the caller gets: 0 and `go_on`: its call is made; 0 alone: as if it had succeeded; else the error.
struct Answer {
  int error = 0;
  bool go_on = false;
};
constexpr Answer kGoOn{0, true}, kDone{0, false}, kUnreachable{ENETUNREACH, false};

/// Name services over a local socket would look names up in the watched program's stead; without them it asks itself.
bool is_name_service(const std::string& path) {
  return path.starts_with("/run/systemd/resolve/") || path.starts_with("/run/nscd/") ||
         path.starts_with("/var/run/nscd/") || path.starts_with("/run/dbus/system_bus_socket");
}

bool is_inside(int family) {
  return family == AF_UNIX || family == AF_NETLINK || family == AF_UNSPEC || family == AF_ALG;
}

/// A datagram socket that was pointed outside.
struct Aimed {
  Attempt attempt;
  bool has_sent = false;
  bool nowhere = false;  ///< no route leads there: it is pretended to be connected
};

/// Whether a datagram could be sent there: connecting its socket sends nothing and asks the kernel for a route.
bool has_route(const std::string& address) {
  const auto family = reinterpret_cast<const sockaddr*>(address.data())->sa_family;
  const int own = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (own < 0) return true;
  const auto size = static_cast<socklen_t>(address.size());
  const bool refused = connect(own, reinterpret_cast<const sockaddr*>(address.data()), size) != 0 &&
                       (errno == ENETUNREACH || errno == EHOSTUNREACH || errno == EADDRNOTAVAIL);
  close(own);
  return !refused;
}

/// A variable by which every descendant of one watched program is known.
std::string unique_mark() {
  static std::atomic<int> number = 0;
  return std::to_string(getpid()) + "-" + std::to_string(number++);
}

/// The processes that carry `mark` in their environment.
std::vector<pid_t> marked_by(const std::string& mark) {
  const auto wanted = "SEALIFT_WATCHED=" + mark + '\0';
  std::vector<pid_t> processes;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const auto name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream in(entry.path() / "environ", std::ios::binary);
    const std::string environment{std::istreambuf_iterator<char>(in), {}};
    if (environment.find(wanted) != std::string::npos) processes.push_back(static_cast<pid_t>(std::stol(name)));
  }
  return processes;
}

/// Kills them. Descendants that left the session come to this process, which reaps them.
void kill_marked(const std::string& mark) {
  for (const pid_t process : marked_by(mark)) {
    kill(process, SIGKILL);
    for (int i = 0; i < 100 && waitpid(process, nullptr, WNOHANG) == 0; ++i) usleep(1000);
  }
}

class Watch : public ChildHook {
 public:
  Watch(const Allowed& allowed, PythonStacks stacks, std::string mark, bool refuse)
      : allowed_(allowed), stacks_(std::move(stacks)), mark_(std::move(mark)), refuse_(refuse) {
    if (pipe2(pipe_, O_CLOEXEC) != 0 || pipe2(taken_, O_CLOEXEC) != 0)
      throw std::runtime_error(std::string("cannot make a pipe: ") + strerror(errno));
  }
  ~Watch() override {
    for (const int file : {pipe_[0], pipe_[1], taken_[0], taken_[1], listener_}) {
      if (file >= 0) close(file);
    }
  }

  bool in_child() override {
    const int listener = install_call_filter();
    char taken = 0;  // exec closes the listener, so it waits until the parent has it
    return write(pipe_[1], &listener, sizeof listener) == sizeof listener && listener >= 0 &&
           read(taken_[0], &taken, 1) == 1;
  }

  void started(std::int64_t process) override {
    close(pipe_[1]);
    pipe_[1] = -1;
    int number = 0;
    if (read(pipe_[0], &number, sizeof number) != sizeof number) return;  // it ended before; run_child says how
    if (number >= 0) listener_ = file_of(static_cast<pid_t>(process), number);
    if (number < 0) fault_ = "the filter is refused: " + std::string(std::strerror(-number));
    if (number >= 0 && listener_ < 0) fault_ = "its descriptors cannot be shared: " + std::string(std::strerror(errno));
    if (listener_ < 0 || write(taken_[1], "", 1) != 1) kill(static_cast<pid_t>(process), SIGKILL);
  }

  void wait_a_moment() override {
    pollfd ready{listener_, POLLIN, 0};
    while (poll(&ready, 1, 10) > 0 && (ready.revents & POLLIN)) {
      answer_one();
      if (++result.calls % 64 == 0) return;  // so that the time limit is looked at
    }
    over_ = (ready.revents & POLLHUP) != 0;
    if (over_) usleep(1000);
  }

  void ended() override {
    const auto end = std::chrono::steady_clock::now() + kGrace;
    while (listener_ >= 0 && !over_ && std::chrono::steady_clock::now() < end) wait_a_moment();
    if (listener_ >= 0 && !over_) {
      for (const pid_t process : marked_by(mark_)) result.left.push_back(Caller(process).command_line());
    }
    for (auto& [inode, aimed] : aimed_) give_up(aimed);
    aimed_.clear();
  }

  WatchedResult result;
  const std::string& fault() const { return fault_; }
  bool has_started() const { return listener_ >= 0; }

 private:
  void answer_one() {
    seccomp_notif call{};
    if (ioctl(listener_, SECCOMP_IOCTL_NOTIF_RECV, &call) != 0) return;
    const Caller caller(static_cast<pid_t>(call.pid));
    const auto answer = look_at(call, caller);
    seccomp_notif_resp response{};
    response.id = call.id;
    response.error = -answer.error;
    response.flags = answer.go_on ? SECCOMP_USER_NOTIF_FLAG_CONTINUE : 0;
    ioctl(listener_, SECCOMP_IOCTL_NOTIF_SEND, &response);  // fails where the caller was killed meanwhile
  }

  Answer look_at(const seccomp_notif& call, const Caller& caller) {
    const auto& given = call.data.args;
    const auto number = call.data.nr;
    if (number == SYS_io_uring_setup) {
      ++result.io_uring;
      return {ENOSYS, false};
    }
    const auto socket = socket_of(caller, static_cast<int>(given[0]));
    if (number == SYS_connect) {
      const auto bytes = caller.read(given[1], std::min<std::uint64_t>(given[2], 128));
      return still_there(call) ? on_connect(call, caller, socket, bytes) : kGoOn;
    }
    const auto sendings = number == SYS_sendto    ? caller.sendto(given[1], given[2], given[4], given[5])
                          : number == SYS_sendmsg ? caller.sendmsg(given[1], 1)
                                                  : caller.sendmsg(given[1], static_cast<std::uint32_t>(given[2]));
    if (!still_there(call)) return kGoOn;
    if (!sendings) return unreadable(caller);
    for (const auto& sending : *sendings) {
      if (const auto answer = on_send(call, caller, socket, sending); !answer.go_on) return answer;
    }
    return kGoOn;
  }

  /// Whether what was read is of the caller, and not of another process that got its number.
  bool still_there(const seccomp_notif& call) const {
    return ioctl(listener_, SECCOMP_IOCTL_NOTIF_ID_VALID, &call.id) == 0;
  }

  Answer on_connect(const seccomp_notif& call, const Caller& caller, const Socket& socket,
                    const std::optional<std::string>& bytes) {
    if (!bytes) return unreadable(caller);
    const auto to = destination_of(*bytes);
    if (!to) return kGoOn;  // the kernel refuses it
    if (to->family == AF_UNIX && is_name_service(to->path)) return {ENOENT, false};
    if (is_inside(to->family) || allowed_.may_reach(*to)) return kGoOn;
    auto attempt = attempt_of(call, caller, to->text(), "");
    if (socket.type != SOCK_DGRAM) return keep(std::move(attempt)), outside();
    // A datagram socket sends nothing yet. With port 0 it never will: glibc so asks for the own address (RFC 6724).
    if (to->port == 0) return kGoOn;
    if (const auto other = aimed_.find(socket.inode); other != aimed_.end()) give_up(other->second);
    // A name server that no route leads to would refuse the call, and what it was to be asked for would not be seen.
    const bool nowhere = !refuse_ && to->port == kDns && !has_route(*bytes);
    aimed_[socket.inode] = {std::move(attempt), false, nowhere};
    // Told that it succeeded, it stays unconnected: its next send is seen, and a write goes nowhere.
    return refuse_ || nowhere ? kDone : kGoOn;
  }

  Answer on_send(const seccomp_notif& call, const Caller& caller, const Socket& socket, const Sending& sending) {
    const auto aimed = sending.to ? aimed_.end() : aimed_.find(socket.inode);
    if (aimed != aimed_.end()) {
      auto attempt = aimed->second.attempt;
      attempt.call = name_of_call(call);
      attempt.name = dns_question(sending.start).value_or("");
      aimed->second.has_sent = true;
      if (attempt.name.empty() || !allowed_.may_ask(attempt.name)) keep(std::move(attempt));
      return aimed->second.nowhere ? kUnreachable : outside();
    }
    const auto to = sending.to ? sending.to : socket.type == SOCK_DGRAM ? socket.peer : std::nullopt;
    if (!to || is_inside(to->family)) return kGoOn;
    const auto name = to->port == kDns ? dns_question(sending.start) : std::nullopt;
    const bool own_name = name && allowed_.may_ask(*name);
    if (allowed_.may_reach(*to) && (!name || own_name)) return kGoOn;
    if (!own_name) keep(attempt_of(call, caller, to->text(), name.value_or("")));
    return outside();
  }

  Answer unreadable(const Caller& caller) {
    if (!caller.forbidden()) return kGoOn;  // a bad address: the kernel says so to the caller
    fault_ = "the memory of " + caller.program() + " may not be read";
    return outside();
  }

  Answer outside() const { return refuse_ ? kUnreachable : kGoOn; }

  /// A socket that has sent was judged by what it sent.
  void give_up(Aimed& aimed) {
    if (!aimed.has_sent) keep(std::move(aimed.attempt));
  }

  static std::string name_of_call(const seccomp_notif& call) {
    switch (call.data.nr) {
      case SYS_connect:
        return "connect";
      case SYS_sendto:
        return "sendto";
      case SYS_sendmsg:
        return "sendmsg";
      default:
        return "sendmmsg";
    }
  }

  Attempt attempt_of(const seccomp_notif& call, const Caller& caller, std::string destination, std::string name) const {
    return {.program = caller.program(),
            .command_line = caller.command_line(),
            .call = name_of_call(call),
            .destination = std::move(destination),
            .name = std::move(name),
            .python = stacks_.take(call.pid)};
  }

  void keep(Attempt attempt) {
    for (auto& known : result.attempts) {
      if (known.program != attempt.program || known.destination != attempt.destination || known.name != attempt.name ||
          known.command_line != attempt.command_line || known.call != attempt.call) {
        continue;
      }
      known.times += attempt.times;
      return;
    }
    if (result.attempts.size() < kMostAttempts) result.attempts.push_back(std::move(attempt));
  }

  const Allowed& allowed_;
  PythonStacks stacks_;
  std::string mark_;
  bool refuse_;
  int pipe_[2] = {-1, -1}, taken_[2] = {-1, -1}, listener_ = -1;
  bool over_ = false;
  std::string fault_;
  std::map<std::uint64_t, Aimed> aimed_;  ///< by inode
};

/// While it lives, orphans among the descendants are this process's children: Yama lets only ancestors look at memory.
class Reaper {
 public:
  Reaper() {
    prctl(PR_GET_CHILD_SUBREAPER, &before_);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
  }
  ~Reaper() { prctl(PR_SET_CHILD_SUBREAPER, before_); }
  Reaper(const Reaper&) = delete;
  Reaper& operator=(const Reaper&) = delete;

 private:
  int before_ = 0;
};

WatchedResult watched(const std::vector<std::string>& argv, const std::vector<Variable>& variables,
                      std::chrono::seconds limit, const std::filesystem::path& folder, const Allowed& allowed,
                      const std::function<bool()>& kill_when, bool refuse) {
  const auto mark = unique_mark();
  const auto notes = folder / (".watch-" + mark);
  const PythonStacks stacks(notes);
  auto all = stacks.variables(variables);
  all.emplace_back("SEALIFT_WATCHED", mark);
  Watch watch(allowed, stacks, mark, refuse);
  const Reaper reaper;
  watch.result.child = run_child(argv, all, limit, folder, kill_when, &watch);
  kill_marked(mark);
  std::error_code ignored;
  std::filesystem::remove_all(notes, ignored);
  watch.result.fault = watch.fault();
  watch.result.started = watch.has_started();
  return std::move(watch.result);
}

}  // namespace

WatchedResult run_watched(const std::vector<std::string>& argv, const std::vector<Variable>& variables,
                          std::chrono::seconds limit, const std::filesystem::path& folder, const Allowed& allowed) {
  auto result = watched(argv, variables, limit, folder, allowed, {}, true);
  if (!result.fault.empty() && result.attempts.empty()) {
    throw NotRun({"connections cannot be watched here (seccomp user notification, Linux 5.6 or newer): " + result.fault,
                  "此处无法监视连接（需要 seccomp 用户通知，Linux 5.6 或更新）：" + result.fault});
  }
  return result;
}

WatchedResult observe(const std::vector<std::string>& argv, const std::vector<Variable>& variables,
                      std::chrono::seconds limit, const std::filesystem::path& folder, const Allowed& allowed,
                      const std::function<bool()>& kill_when) {
  return watched(argv, variables, limit, folder, allowed, kill_when, false);
}

nlohmann::json attempts_json(const std::vector<Attempt>& attempts) {
  auto all = nlohmann::json::array();
  for (const auto& one : attempts) {
    all.push_back({{"program", to_json(one.program)},
                   {"command_line", one.command_line},
                   {"call", one.call},
                   {"destination", one.destination},
                   {"name", one.name},
                   {"python", one.python},
                   {"times", one.times}});
  }
  return all;
}

}  // namespace sealift::verify
