// SPDX-License-Identifier: Apache-2.0
// Where the server listens, as an operator writes it and as the program prints it.
// Numeric only: a static program has no resolver.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sealift::offline_repo {

struct ListenAddress {
  std::string host;  // a numeric address, IPv6 without brackets
  std::uint16_t port = 0;

  std::string text() const;  // "127.0.0.1:8080", "[::1]:8080"
};

// Throws Usage unless `text` is ADDRESS:PORT, IPv6 in brackets. Port 0 lets the system choose.
ListenAddress parse_listen(std::string_view text);

}  // namespace sealift::offline_repo
