// SPDX-License-Identifier: Apache-2.0
// A request as a value in, a response as a value out: everything that the repository decides, without a socket.
// HEAD gets the same response as GET; that its body is not sent is the server's business.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "offline_repo/catalogue/catalogue.hpp"
#include "offline_repo/protocols/negotiate.hpp"

namespace sealift::offline_repo {

// Headers that are absent are empty; those that came several times are joined by ", ".
struct Request {
  std::string method;
  std::string target;  // as it was sent: path and query, not decoded
  std::string accept;
  std::string range;
  std::string if_range;
  std::string if_none_match;
};

// Bytes of a wheel, to be streamed from its bundle.
struct WheelPart {
  const IndexedWheel* wheel = nullptr;
  ByteRange range;
};

struct Response {
  unsigned status = 200;
  std::vector<std::pair<std::string, std::string>> headers;
  std::variant<std::string, WheelPart> body;

  std::uint64_t body_size() const;
  // The header's value, empty when it is not there; `name` as the response spells it.
  std::string_view header(std::string_view name) const;
};

// Never throws for what a client may send. The response points into `catalog`.
Response respond(const Catalog& catalog, const Request& request);

// A short text that says what is wrong and what would be right.
Response refusal(unsigned status, const std::string& why);

}  // namespace sealift::offline_repo
