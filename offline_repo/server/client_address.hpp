// SPDX-License-Identifier: Apache-2.0
// Whom a limit for each client counts as one: an IPv4 address, or the /64 of an IPv6 address, since the holder of one
// has all of them.
#pragma once

#include <boost/asio/ip/address.hpp>
#include <string>

namespace sealift::offline_repo {

inline std::string client_of(const boost::asio::ip::address& address) {
  namespace ip = boost::asio::ip;
  if (address.is_v4()) return address.to_string();
  ip::address_v6 six = address.to_v6();
  if (six.is_v4_mapped()) return ip::make_address_v4(ip::v4_mapped, six).to_string();
  ip::address_v6::bytes_type bytes = six.to_bytes();
  for (std::size_t i = 8; i < bytes.size(); ++i) bytes[i] = 0;
  return ip::address_v6(bytes).to_string() + "/64";
}

}  // namespace sealift::offline_repo
