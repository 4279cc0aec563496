// SPDX-License-Identifier: Apache-2.0
// One datagram; a socket that nobody listens at refuses it at once.
#include "offline_repo/server/service_manager.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>

#include "sealift/bundle/core/file.hpp"

namespace sealift::offline_repo {

bool notify_service_manager(std::string_view state) {
  const char* named = std::getenv("NOTIFY_SOCKET");
  const std::string_view path = named != nullptr ? named : "";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() < 2 || path.size() >= sizeof address.sun_path || (path[0] != '/' && path[0] != '@')) return false;
  std::copy(path.begin(), path.end(), address.sun_path);
  if (path[0] == '@') address.sun_path[0] = '\0';
  const bundle::Descriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  return socket && ::sendto(socket.get(), state.data(), state.size(), MSG_NOSIGNAL,
                            reinterpret_cast<const sockaddr*>(&address), size) == static_cast<ssize_t>(state.size());
}

}  // namespace sealift::offline_repo
