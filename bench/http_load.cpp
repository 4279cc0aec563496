// SPDX-License-Identifier: Apache-2.0
// The client of the repository's comparisons: many keep-alive connections at once, each with so many requests, in one
// thread. The same for both sides, so what it costs itself makes a ratio smaller than it is, never larger.
//   sealift-bench-http PORT TARGET CONNECTIONS REQUESTS [RANGE SIZE]   RANGE bytes from anywhere in SIZE bytes
// Prints milliseconds until all were answered, until the slowest first answer, and how many failed; exit status 1 if
// any.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

struct Load {
  std::uint16_t port;
  std::string target;
  std::size_t connections, requests;
  std::uint64_t range = 0, size = 0;
};

double since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

// One connection: `body` bytes of its answer are still to come; while `head` grows, that is not known yet.
struct Client {
  int socket = -1;
  std::size_t left = 0;  // requests
  std::uint64_t body = 0;
  std::string head;
  bool answered = false;
};

class Run {
 public:
  explicit Run(Load load) : load_(std::move(load)), poll_(::epoll_create1(0)), clients_(load_.connections) {
    for (std::size_t i = 0; i < clients_.size(); ++i) open(clients_[i], i);
  }

  bool all() {
    for (Client& client : clients_) ask(client);
    std::vector<epoll_event> events(1024);
    while (open_ > 0) {
      const int count = ::epoll_wait(poll_, events.data(), static_cast<int>(events.size()), 30'000);
      if (count <= 0) break;  // nobody says anything any more
      for (int i = 0; i < count; ++i) take(*static_cast<Client*>(events[static_cast<std::size_t>(i)].data.ptr));
    }
    failed_ += open_;
    std::printf("%.1f ms, first answers within %.1f ms, %zu failed\n", since(begin_), first_, failed_);
    return failed_ == 0;
  }

 private:
  // From one address for every 50, as different machines.
  void open(Client& client, std::size_t number) {
    client.socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in own{.sin_family = AF_INET,
                          .sin_port = 0,
                          .sin_addr = {htonl(0x7f010001u + static_cast<std::uint32_t>(number / 50))}};
    const sockaddr_in server{
        .sin_family = AF_INET, .sin_port = htons(load_.port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    const int one = 1;
    ::setsockopt(client.socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    ::setsockopt(client.socket, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one);
    if (client.socket < 0 || ::bind(client.socket, reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0 ||
        ::connect(client.socket, reinterpret_cast<const sockaddr*>(&server), sizeof server) != 0)
      throw std::runtime_error("connection " + std::to_string(number) + " failed");
    client.left = load_.requests;
    epoll_event event{.events = EPOLLIN, .data = {.ptr = &client}};
    ::epoll_ctl(poll_, EPOLL_CTL_ADD, client.socket, &event);
    ++open_;
  }
  void ask(Client& client) {
    std::string text = "GET " + load_.target + " HTTP/1.1\r\nHost: bench\r\n";
    if (load_.range > 0) {
      const std::uint64_t first = random_() % (load_.size - load_.range);
      text += "Range: bytes=" + std::to_string(first) + "-" + std::to_string(first + load_.range - 1) + "\r\n";
    }
    text += "\r\n";
    if (::send(client.socket, text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size())) end(client);
  }
  void take(Client& client) {
    const ssize_t count = ::recv(client.socket, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count <= 0) return end(client);
    std::uint64_t bytes = static_cast<std::uint64_t>(count);
    if (client.body == 0) {
      client.head.append(buffer_.data(), bytes);
      const std::size_t at = client.head.find("\r\n\r\n");
      if (at == std::string::npos) return;
      bytes = client.head.size() - at - 4;
      if (!begin_answer(client)) return end(client);
    }
    if (bytes > client.body) return end(client);
    client.body -= bytes;
    if (client.body > 0) return;
    --client.left > 0 ? ask(client) : end(client);
  }
  bool begin_answer(Client& client) {
    if (!client.answered) first_ = std::max(first_, since(begin_));
    client.answered = true;
    const bool good = client.head.starts_with(load_.range > 0 ? "HTTP/1.1 206" : "HTTP/1.1 200");
    const std::size_t length = client.head.find("Content-Length: ");
    if (!good || length == std::string::npos) return false;
    client.body = std::strtoull(client.head.c_str() + length + 16, nullptr, 10);
    client.head.clear();
    return client.body > 0;
  }
  void end(Client& client) {
    failed_ += client.left > 0 ? 1 : 0;
    ::close(client.socket);
    --open_;
  }

  Load load_;
  int poll_;
  std::vector<Client> clients_;
  std::vector<char> buffer_ = std::vector<char>(1 << 20);
  std::mt19937_64 random_{1};
  std::size_t open_ = 0, failed_ = 0;
  double first_ = 0;
  Clock::time_point begin_ = Clock::now();  // connecting counts
};

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 5 && argc != 7) throw std::runtime_error("PORT TARGET CONNECTIONS REQUESTS [RANGE SIZE]");
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  Load load{.port = static_cast<std::uint16_t>(std::atoi(argv[1])),
            .target = argv[2],
            .connections = std::strtoull(argv[3], nullptr, 10),
            .requests = std::strtoull(argv[4], nullptr, 10)};
  if (argc == 7) load.range = std::strtoull(argv[5], nullptr, 10), load.size = std::strtoull(argv[6], nullptr, 10);
  return Run(std::move(load)).all() ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "sealift-bench-http: %s\n", error.what());
  return 1;
}
