// SPDX-License-Identifier: Apache-2.0
// The bodies of address.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/launch/address.hpp>

#include <ifaddrs.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <thread>

namespace sealift::train {

namespace rendezvous {

SEALIFT_BODY Milliseconds left_until(Clock::time_point deadline) {
  return std::max(Milliseconds(1), std::chrono::duration_cast<Milliseconds>(deadline - Clock::now()));
}

SEALIFT_BODY std::string seconds(Milliseconds duration) {
  return c10::str(static_cast<double>(duration.count()) / 1000, " s");
}

SEALIFT_BODY std::string to_text(const sockaddr* address, socklen_t size) {
  char text[NI_MAXHOST];
  return getnameinfo(address, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0 ? text : "";
}

SEALIFT_BODY Addresses resolve(const std::string& host, std::int64_t port, Milliseconds patience) {
  const auto deadline = Clock::now() + patience;
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  for (;;) {
    addrinfo* found = nullptr;
    const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
    if (error == 0) return {found, freeaddrinfo};
    TORCH_CHECK(Clock::now() < deadline, "MASTER_ADDR is '", host, "', which does not resolve",
                patience.count() > 0 ? " within " + seconds(patience) : std::string(), ": ", gai_strerror(error),
                "; use a numeric address where there is no name service");
    std::this_thread::sleep_for(std::min(left_until(deadline), Milliseconds(500)));
  }
}

SEALIFT_BODY bool answers(const addrinfo& address, Milliseconds patience) {
  const int socket = ::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket < 0) return false;
  int error = ::connect(socket, address.ai_addr, address.ai_addrlen) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    pollfd one{.fd = socket, .events = POLLOUT, .revents = 0};
    socklen_t size = sizeof error;
    const bool done = poll(&one, 1, static_cast<int>(patience.count())) == 1;
    if (!done || getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = ETIMEDOUT;
  }
  close(socket);
  return error == 0;
}

}  // namespace rendezvous

SEALIFT_BODY std::string local_address_towards(const std::string& host, std::int64_t port,
                                               std::chrono::milliseconds patience) {
  const auto addresses = rendezvous::resolve(host, port, patience);
  for (const auto* address = addresses.get(); address; address = address->ai_next) {
    const int socket = ::socket(address->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (socket < 0) continue;
    sockaddr_storage own{};
    socklen_t size = sizeof own;
    // Connecting a datagram socket only chooses a route.
    const bool routed = ::connect(socket, address->ai_addr, address->ai_addrlen) == 0 &&
                        getsockname(socket, reinterpret_cast<sockaddr*>(&own), &size) == 0;
    close(socket);
    const auto text = routed ? rendezvous::to_text(reinterpret_cast<sockaddr*>(&own), size) : std::string();
    if (!text.empty()) return text;
  }
  TORCH_CHECK(false, "no route to MASTER_ADDR '", host, "'; check the network, or use 127.0.0.1 on one host");
}

SEALIFT_BODY std::string address_of_interface(const std::string& interface) {
  ifaddrs* first = nullptr;
  TORCH_CHECK(getifaddrs(&first) == 0, "cannot list the network interfaces of this host");
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> all(first, freeifaddrs);
  std::string others;
  for (const int family : {AF_INET, AF_INET6}) {
    for (const auto* one = first; one; one = one->ifa_next) {
      const bool usable = one->ifa_addr && one->ifa_addr->sa_family == family && (one->ifa_flags & IFF_UP);
      if (!usable) continue;
      const auto address =
          rendezvous::to_text(one->ifa_addr, family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
      if (one->ifa_name == interface) return address;
      others += c10::str(others.empty() ? "" : ", ", one->ifa_name, " ", address);
    }
  }
  TORCH_CHECK(false, "GLOO_SOCKET_IFNAME is '", interface, "', which is no interface with an address on this host; ",
              "name one that leads to the other hosts (here: ", others, "), or unset it");
}

SEALIFT_BODY std::string address_of_interfaces(const std::string& interfaces) {
  std::string first;
  for (std::string_view rest = interfaces; !rest.empty();) {
    const auto name = rest.substr(0, rest.find(','));
    const auto address = address_of_interface(std::string(name));
    if (first.empty()) first = address;
    rest.remove_prefix(std::min(rest.size(), name.size() + 1));
  }
  return first;
}

}  // namespace sealift::train
