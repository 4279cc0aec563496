// SPDX-License-Identifier: Apache-2.0
// The address itself is parsed by Asio, which will bind it.
#include "offline_repo/server/listen_address.hpp"

#include <boost/asio/ip/address.hpp>
#include <charconv>

#include "sealift/bundle/core/error.hpp"
#include "sealift/bundle/core/safe_path.hpp"

namespace sealift::offline_repo {

std::string ListenAddress::text() const {
  const std::string shown = host.find(':') != std::string::npos ? "[" + host + "]" : host;
  return shown + ":" + std::to_string(port);
}

ListenAddress parse_listen(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  std::string_view host = text.substr(0, colon);
  const bool brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (brackets) host = host.substr(1, host.size() - 2);
  const std::string_view digits = colon == text.npos ? std::string_view() : text.substr(colon + 1);
  ListenAddress address{.host = std::string(host)};
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), address.port);
  boost::system::error_code error;
  const boost::asio::ip::address numeric = boost::asio::ip::make_address(address.host, error);
  const bool port_ok = !digits.empty() && failure == std::errc() && end == digits.data() + digits.size();
  if (!port_ok || error || numeric.is_v6() != brackets)
    throw bundle::Error(bundle::ErrorCode::Usage,
                        {.what = "this is not an address to listen on",
                         .expected = "a numeric ADDRESS:PORT such as 127.0.0.1:8080, [::1]:8080, 0.0.0.0:80",
                         .got = bundle::SafePath::printable(text)});
  return address;
}

}  // namespace sealift::offline_repo
