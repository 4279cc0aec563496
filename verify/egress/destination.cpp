// SPDX-License-Identifier: Apache-2.0
// Addresses, prefixes and names.
// See destination.hpp.
// Bytes are copied before they are read as a struct: those of another process need not be aligned.
#include "verify/egress/destination.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <stdexcept>

namespace sealift::verify {
namespace {

constexpr std::string_view kMapped("\0\0\0\0\0\0\0\0\0\0\xff\xff", 12);  // RFC 4291, 2.5.5.2

template <class T>
T address_as(std::string_view bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), std::min(bytes.size(), sizeof value));
  return value;
}

std::string in_lower_case(std::string text) {
  for (auto& letter : text) letter = letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + 32) : letter;
  return text;
}

std::optional<std::string> address_bytes(int family, const std::string& text) {
  char bytes[16];
  if (inet_pton(family, text.c_str(), bytes) != 1) return std::nullopt;
  return std::string(bytes, family == AF_INET ? 4 : 16);
}

std::optional<unsigned> number_up_to(std::string_view text, unsigned most) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value > most) return std::nullopt;
  return value;
}

/// The name that asks for the name of an address: RFC 1035, 3.5, and RFC 3596, 2.5.
std::string reverse_of(int family, const std::string& address) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string name;
  for (std::size_t i = address.size(); i-- > 0;) {
    const auto byte = static_cast<unsigned char>(address[i]);
    if (family == AF_INET) {
      name += std::to_string(byte) + '.';
    } else {
      name += {kDigits[byte & 15], '.', kDigits[byte >> 4], '.'};
    }
  }
  return name + (family == AF_INET ? "in-addr.arpa" : "ip6.arpa");
}

}  // namespace

std::string Destination::text() const {
  char buffer[INET6_ADDRSTRLEN] = {};
  if (family == AF_INET && inet_ntop(AF_INET, address.data(), buffer, sizeof buffer)) {
    return buffer + (':' + std::to_string(port));
  }
  if (family == AF_INET6 && inet_ntop(AF_INET6, address.data(), buffer, sizeof buffer)) {
    return '[' + std::string(buffer) + "]:" + std::to_string(port);
  }
  if (family == AF_UNIX) return "unix:" + path;
  return "address family " + std::to_string(family);
}

std::optional<Destination> destination_of(std::string_view bytes) {
  if (bytes.size() < sizeof(sa_family_t)) return std::nullopt;
  Destination to;
  to.family = address_as<sa_family_t>(bytes);
  if (to.family == AF_INET) {
    if (bytes.size() < offsetof(sockaddr_in, sin_zero)) return std::nullopt;
    const auto address = address_as<sockaddr_in>(bytes);
    to.address.assign(reinterpret_cast<const char*>(&address.sin_addr), 4);
    to.port = ntohs(address.sin_port);
  } else if (to.family == AF_INET6) {
    if (bytes.size() < offsetof(sockaddr_in6, sin6_scope_id)) return std::nullopt;
    const auto address = address_as<sockaddr_in6>(bytes);
    to.address.assign(reinterpret_cast<const char*>(&address.sin6_addr), 16);
    to.port = ntohs(address.sin6_port);
    if (to.address.starts_with(kMapped)) {
      to.family = AF_INET;
      to.address.erase(0, kMapped.size());
    }
  } else if (to.family == AF_UNIX) {
    auto path = bytes.substr(offsetof(sockaddr_un, sun_path));
    if (!path.empty() && path[0] != '\0') path = path.substr(0, path.find('\0'));
    to.path.assign(path);
    if (!to.path.empty() && to.path[0] == '\0') to.path[0] = '@';  // as ss and /proc/net/unix show an abstract name
  }
  return to;
}

std::optional<std::string> dns_question(std::string_view datagram) {
  constexpr std::size_t kHeader = 12, kLongest = 255;
  if (datagram.size() < kHeader + 5) return std::nullopt;
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(datagram[at]); };
  const bool is_query = (byte(2) & 0xf8) == 0;  // not a response, opcode 0
  if (!is_query || byte(4) != 0 || byte(5) == 0) return std::nullopt;
  std::string name;
  std::size_t at = kHeader;
  while (at < datagram.size() && byte(at) != 0) {
    const std::size_t length = byte(at++);
    if (length > 63 || at + length > datagram.size() || name.size() + length > kLongest) return std::nullopt;
    if (!name.empty()) name += '.';
    for (const char letter : datagram.substr(at, length)) name += letter > ' ' && letter < 127 ? letter : '?';
    at += length;
  }
  if (at + 5 > datagram.size()) return std::nullopt;  // the 0, type and class
  return in_lower_case(name.empty() ? "." : name);
}

bool Allowed::Range::contains(const Destination& to) const {
  if (to.family != family || to.address.size() != address.size() || (port && *port != to.port)) return false;
  const unsigned whole = bits / 8, rest = bits % 8;
  if (to.address.compare(0, whole, address, 0, whole) != 0) return false;
  return rest == 0 || ((static_cast<unsigned char>(to.address[whole]) ^ static_cast<unsigned char>(address[whole])) >>
                       (8 - rest)) == 0;
}

std::optional<Allowed::Range> Allowed::range_of(const std::string& entry) {
  std::string text = entry, port;
  if (text.starts_with('[')) {
    const auto end = text.find("]:");
    if (end == std::string::npos) return std::nullopt;
    port = text.substr(end + 2);
    text = text.substr(1, end - 1);
  } else if (const auto colon = text.find(':'); colon != std::string::npos && text.rfind(':') == colon) {
    port = text.substr(colon + 1);
    text = text.substr(0, colon);
  }
  std::string bits;
  const auto slash = text.find('/');
  if (slash != std::string::npos) {
    bits = text.substr(slash + 1);
    text = text.substr(0, slash);
  }
  Range range{text.find(':') == std::string::npos ? AF_INET : AF_INET6, {}, 0, {}};
  const auto address = address_bytes(range.family, text);
  if (!address) return std::nullopt;
  range.address = *address;
  const unsigned most = range.family == AF_INET ? 32 : 128;
  const auto width = slash == std::string::npos ? std::optional(most) : number_up_to(bits, most);
  const auto number_of_port = port.empty() ? std::optional(0U) : number_up_to(port, 65535);
  if (!width || !number_of_port) throw std::invalid_argument("\"" + entry + "\" is no prefix or port");
  range.bits = *width;
  if (!port.empty()) range.port = static_cast<std::uint16_t>(*number_of_port);
  return range;
}

Allowed::Allowed(const std::vector<std::string>& entries, const std::vector<std::string>& own, std::string host,
                 std::vector<std::string> hosts)
    : hosts_(std::move(hosts)) {
  hosts_.push_back(std::move(host));
  std::erase(hosts_, "");
  for (auto& name : hosts_) name = in_lower_case(name);
  for (const auto& text : {"127.0.0.0/8", "0.0.0.0", "::1", "::"}) own_.push_back(*range_of(text));
  for (const auto& text : own) {
    if (const auto range = range_of(text)) own_.push_back(*range);
  }
  for (const auto& entry : entries) {
    if (const auto range = range_of(entry)) {
      listed_.push_back(*range);
    } else if (entry.empty() || entry.find_first_of("/:[] ") != std::string::npos) {
      throw std::invalid_argument("[egress] allowed: \"" + entry +
                                  "\" is neither an address, a prefix, an address with a port, nor a name");
    } else {
      names_.push_back(in_lower_case(entry));
    }
  }
}

bool Allowed::stays(const Destination& to) const {
  return std::any_of(own_.begin(), own_.end(), [&](const Range& range) { return range.contains(to); });
}

bool Allowed::may_reach(const Destination& to) const {
  return stays(to) ||
         std::any_of(listed_.begin(), listed_.end(), [&](const Range& range) { return range.contains(to); });
}

bool Allowed::may_ask(const std::string& name) const {
  // A resolver adds the domains of its search list behind a name.
  const auto is_it = [&](const std::string& host) { return name == host || name.starts_with(host + '.'); };
  if (name == "localhost" || std::any_of(hosts_.begin(), hosts_.end(), is_it)) return true;
  if (name.ends_with(".127.in-addr.arpa")) return true;
  for (const auto& range : own_) {
    if (name == reverse_of(range.family, range.address)) return true;
  }
  return std::any_of(names_.begin(), names_.end(), [&](const std::string& listed) {
    return name == listed || (listed.starts_with('.') && name.ends_with(listed));
  });
}

std::vector<std::string> own_addresses() {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return {};
  std::vector<std::string> texts;
  for (const ifaddrs* one = all; one; one = one->ifa_next) {
    char text[INET6_ADDRSTRLEN];
    if (!one->ifa_addr) continue;
    const void* bytes = nullptr;
    if (one->ifa_addr->sa_family == AF_INET) bytes = &reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr;
    if (one->ifa_addr->sa_family == AF_INET6) bytes = &reinterpret_cast<const sockaddr_in6*>(one->ifa_addr)->sin6_addr;
    if (bytes && inet_ntop(one->ifa_addr->sa_family, bytes, text, sizeof text)) texts.emplace_back(text);
  }
  freeifaddrs(all);
  return texts;
}

}  // namespace sealift::verify
