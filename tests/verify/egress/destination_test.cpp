// SPDX-License-Identifier: Apache-2.0
// Addresses out of foreign memory, DNS queries and a site's list; each kind of hostile bytes is nothing, not a fault.
#include "verify/egress/destination.hpp"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <sys/socket.h>

#include <stdexcept>

using namespace sealift::verify;

namespace {

std::string sockaddr_of(int family, const char* address, std::uint16_t port) {
  if (family == AF_INET) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    inet_pton(AF_INET, address, &to.sin_addr);
    return {reinterpret_cast<const char*>(&to), sizeof to};
  }
  sockaddr_in6 to{};
  to.sin6_family = AF_INET6;
  to.sin6_port = htons(port);
  inet_pton(AF_INET6, address, &to.sin6_addr);
  return {reinterpret_cast<const char*>(&to), sizeof to};
}

Destination at(const char* address, std::uint16_t port) {
  return *destination_of(
      sockaddr_of(std::string(address).find(':') == std::string::npos ? AF_INET : AF_INET6, address, port));
}

const std::string kQuery = std::string("\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00", 12) +
                           "\x03Hub\x07"
                           "example" +
                           std::string("\0\0\1\0\1", 5);

}  // namespace

TEST_CASE("an address is shown as people write it, and IPv4 in IPv6's clothes is IPv4") {
  CHECK(at("192.0.2.1", 443).text() == "192.0.2.1:443");
  CHECK(at("2001:db8::1", 443).text() == "[2001:db8::1]:443");
  CHECK(at("::ffff:10.1.2.3", 80).text() == "10.1.2.3:80");
  CHECK(destination_of(std::string("\1\0/run/x\0more", 13))->text() == "unix:/run/x");
  CHECK(destination_of(std::string("\x28\0", 2))->text() == "address family 40");
}

TEST_CASE("an address that is cut anywhere is no address") {
  for (const auto& whole :
       {sockaddr_of(AF_INET, "192.0.2.1", 443).substr(0, 8), sockaddr_of(AF_INET6, "::1", 443).substr(0, 24)}) {
    CHECK(destination_of(whole).has_value());
    for (std::size_t size = 0; size < whole.size(); ++size) CHECK(!destination_of(whole.substr(0, size)));
  }
}

TEST_CASE("a DNS query gives its name, and one that is cut, too long or an answer gives none") {
  CHECK(dns_question(kQuery) == "hub.example");
  for (std::size_t size = 0; size < kQuery.size(); ++size)
    CHECK(!dns_question(std::string_view(kQuery).substr(0, size)));
  auto answer = kQuery;
  answer[2] = '\x81';
  CHECK(!dns_question(answer));
  auto pointer = kQuery;
  pointer[12] = '\xc0';
  CHECK(!dns_question(pointer));
  std::string endless = kQuery.substr(0, 12);
  for (int i = 0; i < 10; ++i) endless += '\x3f' + std::string(63, 'a');
  CHECK(!dns_question(endless + std::string("\0\0\1\0\1", 5)));
  auto hidden = kQuery;
  hidden[13] = '\x1b';
  CHECK(dns_question(hidden) == "?ub.example");
}

TEST_CASE("this machine and the site's list may be reached; the neighbours of a prefix may not") {
  const Allowed allowed({"10.0.0.0/9", "10.200.1.1:8081", "fd00:1::/33", "nexus.bank", ".local"},
                        {"192.0.2.7", "fe80::5"}, "gpu07");
  for (const auto& to :
       {at("127.5.5.5", 1), at("192.0.2.7", 99), at("::1", 1), at("fe80::5", 1), at("10.127.255.255", 1),
        at("10.200.1.1", 8081), at("fd00:1:7fff::1", 1), at("::ffff:10.0.0.1", 1)}) {
    CAPTURE(to.text());
    CHECK(allowed.may_reach(to));
  }
  for (const auto& to :
       {at("192.0.2.8", 99), at("10.128.0.0", 1), at("10.200.1.1", 8082), at("fd00:1:8000::1", 1), at("8.8.8.8", 53)}) {
    CAPTURE(to.text());
    CHECK(!allowed.may_reach(to));
  }
  CHECK(allowed.stays(at("192.0.2.7", 1)));
  CHECK(!allowed.stays(at("10.0.0.1", 1)));
}

TEST_CASE("the own name, the reverse of own addresses and listed names may be asked for") {
  const Allowed allowed({"nexus.bank", ".local"}, {"192.0.2.7", "2001:db8::1"}, "GPU07");
  for (const auto* name : {"gpu07", "gpu07.bank", "localhost", "nexus.bank", "a.b.local", "7.2.0.192.in-addr.arpa",
                           "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa"}) {
    CAPTURE(name);
    CHECK(allowed.may_ask(name));
  }
  for (const auto* name : {"gpu071", "hub.example", "evil-nexus.bank", "evillocal", "8.2.0.192.in-addr.arpa"}) {
    CAPTURE(name);
    CHECK(!allowed.may_ask(name));
  }
}

TEST_CASE("a list with an entry that means nothing is refused by that entry") {
  for (const auto* entry : {"10.0.0.0/33", "10.0.0.1:99999", "http://nexus", "", "nexus.bank:8081", "[::1"}) {
    CAPTURE(entry);
    CHECK_THROWS_AS(Allowed({entry}, {}, ""), std::invalid_argument);
  }
}
