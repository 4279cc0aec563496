// SPDX-License-Identifier: Apache-2.0
// A question of one byte, an answer of eight: the time.
// See clock.hpp.
// One thread and poll: the answers of a thousand ranks are short.
#include "verify/machine/clock.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <stdexcept>
#include <thread>
#include <vector>

namespace sealift::verify {
namespace {

constexpr int kPatience = 10'000;  // ms
constexpr int kQuestions = 16;

class Connection {
 public:
  explicit Connection(int file = -1) : file_(file) {}
  ~Connection() {
    if (file_ >= 0) close(file_);
  }
  Connection(Connection&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  Connection& operator=(Connection&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }
  int file() const { return file_; }

 private:
  int file_;
};

bool ready(int file, int milliseconds) {
  pollfd one{file, POLLIN, 0};
  return poll(&one, 1, milliseconds) > 0;
}

[[noreturn]] void fail_clock(const std::string& what, const Site& site) {
  throw std::runtime_error(what + " " + site.master_addr + ":" + std::to_string(site.free_port) + ": " +
                           std::strerror(errno));
}

Connection listen_on(const Site& site) {
  Connection server(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(static_cast<std::uint16_t>(site.free_port));
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = six.sin6_port;
  const int off = 0, on = 1;
  setsockopt(server.file(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  setsockopt(server.file(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  bool bound = bind(server.file(), reinterpret_cast<sockaddr*>(&six), sizeof six) == 0;
  if (!bound) {  // a host without IPv6
    server = Connection(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    setsockopt(server.file(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    bound = bind(server.file(), reinterpret_cast<sockaddr*>(&four), sizeof four) == 0;
  }
  if (!bound || listen(server.file(), SOMAXCONN) != 0) fail_clock("rank 0 cannot listen on", site);
  return server;
}

/// Answers one question of `file`; false when it has closed.
bool answer(int file, double (*now)()) {
  char question = 0;
  if (recv(file, &question, 1, 0) != 1) return false;
  const double time = now();
  return send(file, &time, sizeof time, MSG_NOSIGNAL) == sizeof time;
}

void serve(const Site& site, double (*now)()) {
  const auto server = listen_on(site);
  std::vector<Connection> clients;
  std::int64_t finished = 0;
  while (finished < site.world_size - 1) {
    std::vector<pollfd> all{{server.file(), POLLIN, 0}};
    for (const auto& client : clients) all.push_back({client.file(), POLLIN, 0});
    if (poll(all.data(), all.size(), kPatience) <= 0) return;  // who has not come says so itself
    for (std::size_t i = clients.size(); i-- > 0;) {
      if (all[i + 1].revents == 0 || answer(clients[i].file(), now)) continue;
      clients.erase(clients.begin() + static_cast<std::ptrdiff_t>(i));
      ++finished;
    }
    const int on = 1;
    if (all[0].revents == 0) continue;
    clients.emplace_back(accept4(server.file(), nullptr, nullptr, SOCK_CLOEXEC));
    setsockopt(clients.back().file(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
}

Connection connect_once(const Site& site) {
  addrinfo wanted{}, *found = nullptr;
  wanted.ai_socktype = SOCK_STREAM;
  if (getaddrinfo(site.master_addr.c_str(), std::to_string(site.free_port).c_str(), &wanted, &found) != 0)
    return Connection();
  Connection result;
  for (const addrinfo* one = found; one && result.file() < 0; one = one->ai_next) {
    Connection socket(::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (connect(socket.file(), one->ai_addr, one->ai_addrlen) == 0) result = std::move(socket);
  }
  freeaddrinfo(found);
  return result;
}

Connection connect_to_first(const Site& site) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatience);
  auto client = connect_once(site);
  while (client.file() < 0 && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    client = connect_once(site);
  }
  if (client.file() < 0) fail_clock("rank 0 does not answer at", site);
  const int on = 1;
  setsockopt(client.file(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return client;
}

}  // namespace

double wall_clock() {
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

nlohmann::json measure_clock(const Site& site, double (*now)()) {
  if (site.rank == 0) {
    if (site.world_size > 1) serve(site, now);
    return {{"offset", 0.0}, {"bound", 0.0}};
  }
  const auto client = connect_to_first(site);
  if (!site.is_first_of_host()) return nullptr;
  double offset = 0, shortest = 1e9;
  for (int i = 0; i < kQuestions; ++i) {
    double theirs = 0;
    const double asked = now();
    if (send(client.file(), "?", 1, MSG_NOSIGNAL) != 1 || !ready(client.file(), kPatience) ||
        recv(client.file(), &theirs, sizeof theirs, MSG_WAITALL) != sizeof theirs) {
      fail_clock("rank 0 stopped answering at", site);
    }
    const double came = now();
    if (came - asked >= shortest) continue;
    shortest = came - asked;
    offset = (asked + came) / 2 - theirs;
  }
  return {{"offset", offset}, {"bound", shortest / 2}};
}

}  // namespace sealift::verify
