// SPDX-License-Identifier: Apache-2.0
// Tries to leave in the way that its arguments name, or does what a clean program does with sockets.
// Started by watch_test under the watch.
// Addresses are for documents (RFC 5737, RFC 3849): no packet could reach anybody.
#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace {

sockaddr_in v4(const char* address, std::uint16_t port) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  inet_pton(AF_INET, address, &to.sin_addr);
  return to;
}

template <class Address>
int connect_to(const Address& to, int type = SOCK_STREAM) {
  const int socket = ::socket(reinterpret_cast<const sockaddr&>(to).sa_family, type, 0);
  connect(socket, reinterpret_cast<const sockaddr*>(&to), sizeof to);
  return socket;
}

void stream(std::uint16_t port) {
  close(connect_to(v4("192.0.2.1", port)));
}

void stream_v6() {
  sockaddr_in6 to{};
  to.sin6_family = AF_INET6;
  to.sin6_port = htons(443);
  inet_pton(AF_INET6, "2001:db8::7", &to.sin6_addr);
  close(connect_to(to));
}

std::string query(const std::vector<std::string>& labels) {
  std::string bytes("\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00", 12);
  for (const auto& label : labels) bytes += static_cast<char>(label.size()) + label;
  return bytes + std::string("\0\0\1\0\1", 5);
}

void dns_to(const char* server, const std::vector<std::string>& labels) {
  const auto to = v4(server, 53);
  const auto bytes = query(labels);
  const int socket = ::socket(AF_INET, SOCK_DGRAM, 0);
  sendto(socket, bytes.data(), bytes.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof to);
  close(socket);
}

/// As glibc's resolver does: connect, then sendmmsg without addresses.
void dns_connected(const std::vector<std::string>& one, const std::vector<std::string>& two) {
  const int socket = connect_to(v4("192.0.2.53", 53), SOCK_DGRAM);
  auto first = query(one), second = query(two);
  iovec parts[] = {{first.data(), first.size()}, {second.data(), second.size()}};
  mmsghdr messages[2]{};
  for (int i = 0; i < 2; ++i) messages[i].msg_hdr.msg_iov = &parts[i], messages[i].msg_hdr.msg_iovlen = 1;
  sendmmsg(socket, messages, 2, 0);
  close(socket);
}

void message() {
  auto to = v4("198.51.100.9", 8125);
  char text[] = "metric:1|c";
  iovec part{text, sizeof text - 1};
  msghdr header{};
  header.msg_name = &to;
  header.msg_namelen = sizeof to;
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  const int socket = ::socket(AF_INET, SOCK_DGRAM, 0);
  sendmsg(socket, &header, 0);
  close(socket);
}

/// A connected datagram socket that is written to: no send call is ever made.
void written() {
  const int socket = connect_to(v4("198.51.100.10", 4000), SOCK_DGRAM);
  if (write(socket, "x", 1) == 1) std::puts("it was sent");
  close(socket);
}

void daemon_later() {
  if (fork() != 0) return;
  setsid();
  if (fork() != 0) _exit(0);
  usleep(300'000);
  stream(6666);
  _exit(0);
}

/// Acts long after the watch has ended.
void daemon_much_later() {
  if (fork() != 0) return;
  setsid();
  sleep(25);
  stream(6667);
  _exit(0);
}

/// A ring, by which connections could be made unseen.
void ring() {
  char parameters[256] = {};
  if (syscall(SYS_io_uring_setup, 4, parameters) >= 0 || errno != ENOSYS) std::puts("there was a ring");
}

void grandchild() {
  const pid_t child = fork();
  if (child == 0) {
    if (fork() == 0) {
      stream(5555);
      _exit(0);
    }
    wait(nullptr);
    _exit(0);
  }
  waitpid(child, nullptr, 0);
}

/// A server and a client over loopback, a pair of local sockets, the own name, the own addresses.
void clean() {
  const int server = socket(AF_INET, SOCK_STREAM, 0);
  auto here = v4("127.0.0.1", 0);
  socklen_t size = sizeof here;
  bind(server, reinterpret_cast<sockaddr*>(&here), sizeof here);
  listen(server, 1);
  getsockname(server, reinterpret_cast<sockaddr*>(&here), &size);
  const int client = connect_to(here), other = accept(server, nullptr, nullptr);
  char text[6] = {};
  if (send(client, "hello", 5, 0) != 5 || read(other, text, 5) != 5 || std::string(text) != "hello")
    std::puts("no hello");
  int pair[2];
  socketpair(AF_UNIX, SOCK_DGRAM, 0, pair);
  if (send(pair[0], "hello", 5, 0) != 5) std::puts("no pair");
  close(connect_to(v4("192.0.2.1", 0), SOCK_DGRAM));  // asks for the own address towards there
  addrinfo* found = nullptr;
  if (getaddrinfo("localhost", "80", nullptr, &found) == 0) freeaddrinfo(found);
}

}  // namespace

int main(int count, char** arguments) {
  const std::map<std::string, void (*)()> ways{{"connect", [] { stream(443); }},
                                               {"ipv6", stream_v6},
                                               {"dns",
                                                [] {
                                                  dns_to("192.0.2.53", {"Hub", "example"});
                                                }},
                                               {"stub",
                                                [] {
                                                  dns_to("127.0.0.53", {"hub", "example"});
                                                }},
                                               {"resolver",
                                                [] {
                                                  dns_connected({"telemetry", "example"}, {"other", "example"});
                                                }},
                                               {"own_name",
                                                [] {
                                                  const std::vector<std::string> own{"1",   "0",       "0",
                                                                                     "127", "in-addr", "arpa"};
                                                  dns_connected(own, own);
                                                }},
                                               {"sendmsg", message},
                                               {"write", written},
                                               {"thread", [] { std::thread([] { stream(4444); }).join(); }},
                                               {"grandchild", grandchild},
                                               {"daemon", daemon_later},
                                               {"late_daemon", daemon_much_later},
                                               {"ring", ring},
                                               {"clean", clean},
                                               {"sleep", [] { sleep(60); }}};
  for (int i = 1; i < count; ++i) ways.at(arguments[i])();
}
