// SPDX-License-Identifier: Apache-2.0
// HTTP/1.0, so that the end of the connection is the end of the answer.
#include "offline_repo/server/admin_client.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "sealift/bundle/core/error.hpp"
#include "sealift/bundle/core/file.hpp"

namespace sealift::offline_repo {

namespace {

constexpr std::size_t kMaxAnswer = std::size_t{64} << 20;

[[noreturn]] void throw_no_answer(const ListenAddress& admin, const std::string& got) {
  throw bundle::Error(bundle::ErrorCode::Network, {.what = "no server tells its status here",
                                                   .where = admin.text(),
                                                   .got = got,
                                                   .next = "name the address of `serve --admin-listen`"});
}

bundle::Descriptor connected(const ListenAddress& admin, std::chrono::seconds limit) {
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  v4.sin_family = AF_INET;
  v6.sin6_family = AF_INET6;
  v4.sin_port = v6.sin6_port = htons(admin.port);
  const bool is_v4 = ::inet_pton(AF_INET, admin.host.c_str(), &v4.sin_addr) == 1;
  if (!is_v4) ::inet_pton(AF_INET6, admin.host.c_str(), &v6.sin6_addr);
  bundle::Descriptor socket(::socket(is_v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval time{.tv_sec = static_cast<time_t>(limit.count()), .tv_usec = 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);  // of connect(2), too
  const auto* address = is_v4 ? reinterpret_cast<const sockaddr*>(&v4) : reinterpret_cast<const sockaddr*>(&v6);
  if (!socket || ::connect(socket.get(), address, is_v4 ? sizeof v4 : sizeof v6) != 0)
    throw_no_answer(admin, std::strerror(errno));
  return socket;
}

std::string everything_from(int socket, const ListenAddress& admin) {
  std::string text;
  char buffer[16384];
  for (;;) {
    const ssize_t count = ::recv(socket, buffer, sizeof buffer, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_no_answer(admin, std::strerror(errno));
    if (count == 0) return text;
    text.append(buffer, static_cast<std::size_t>(count));
    if (text.size() > kMaxAnswer) throw_no_answer(admin, "more than 64 MiB");
  }
}

}  // namespace

std::string ask_admin(const ListenAddress& admin, const std::string& target, std::chrono::seconds limit) {
  const bundle::Descriptor socket = connected(admin, limit);
  const std::string request = "GET " + target + " HTTP/1.0\r\n\r\n";
  if (::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(request.size()))
    throw_no_answer(admin, std::strerror(errno));
  const std::string answer = everything_from(socket.get(), admin);
  const std::size_t end = answer.find("\r\n\r\n");
  if (!answer.starts_with("HTTP/1.") || answer.substr(8, 5) != " 200 " || end == answer.npos)
    throw_no_answer(admin, answer.substr(0, std::min(answer.find("\r\n"), std::size_t{100})));
  return answer.substr(end + 4);
}

}  // namespace sealift::offline_repo
