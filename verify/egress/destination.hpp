// SPDX-License-Identifier: Apache-2.0
// Where a packet would go: an address out of a program's memory, whether it stays on this machine, what a DNS query
// asks for, and what a site allows.
// Below the watch; pure, and every byte that it reads is hostile.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sealift::verify {

struct Destination {
  int family = 0;          ///< AF_…
  std::string address;     ///< 4 or 16 bytes of AF_INET and AF_INET6; an IPv4 address in IPv6's clothes is AF_INET
  std::uint16_t port = 0;  ///< of those two
  std::string path;        ///< of AF_UNIX, without the 0 at its end

  /// "192.0.2.1:443", "[2001:db8::1]:443", "unix:/run/x", "address family 40".
  std::string text() const;
};

/// A sockaddr; nothing where it is too short for its family.
std::optional<Destination> destination_of(std::string_view bytes);

/// The name in a DNS query (RFC 1035, 4.1), lower case, with what is not printable as `?`; nothing where the bytes are
/// no query.
std::optional<std::string> dns_question(std::string_view datagram);

/// What may be reached: this machine, and the site's list.
class Allowed {
 public:
  /// Of `entries`, each is an address or prefix ("10.0.0.0/8", "fd00::/8", "10.1.2.3"), with a port where one is meant
  /// ("10.1.2.3:8081", "[fd00::1]:443"), or a name that may be looked up ("nexus.bank"; ".bank": all below). `own` are
  /// this machine's addresses as text, and `host` its name; of a run on several machines theirs too, with `hosts`.
  /// Throws std::invalid_argument naming the entry.
  Allowed(const std::vector<std::string>& entries, const std::vector<std::string>& own, std::string host,
          std::vector<std::string> hosts = {});

  bool stays(const Destination& to) const;      ///< on this machine
  bool may_reach(const Destination& to) const;  ///< this machine, or an entry
  bool may_ask(
      const std::string& name) const;  ///< a listed name, or this machine's own, or the reverse of an address of it

 private:
  struct Range {
    int family;
    std::string address;
    unsigned bits;
    std::optional<std::uint16_t> port;
    bool contains(const Destination& to) const;
  };
  static std::optional<Range> range_of(const std::string& entry);
  std::vector<Range> own_, listed_;
  std::vector<std::string> names_;
  std::vector<std::string> hosts_;
};

/// This machine, now: the addresses of its interfaces.
std::vector<std::string> own_addresses();

}  // namespace sealift::verify
