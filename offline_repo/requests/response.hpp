// SPDX-License-Identifier: Apache-2.0
// A request and a response as values: `respond` (routes.hpp) makes one from the other, a connection reads and sends
// them. No type of the HTTP library is in them, so that every rule is tested without a socket.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "offline_repo/catalogue/catalogue.hpp"
#include "offline_repo/protocols/negotiate.hpp"
#include "offline_repo/requests/route_kind.hpp"

namespace sealift::offline_repo {

// Headers that are absent are empty; repeated ones are joined by ", ".
struct Request {
  std::string method;
  std::string target;  // as it was sent: path and query, not decoded
  std::string accept;
  std::string range;
  std::string if_range;
  std::string if_none_match;
  std::string content_type = {};
  std::string body = {};  // only where wanted_body (routes.hpp) asks for one
  std::string host = {}, accept_language = {}, forwarded_proto = {}, forwarded_prefix = {};
  std::string user = {};         // the name of the client's token; empty: it has none
  bool loses_token = false;      // redirected, this client would come without its token
  std::string root = {};         // of this view: "", "/c/CHANNEL" or "/b/NAME-VERSION"; the target begins behind it
  std::string registry = "/v2";  // the path by which the client reaches this view's registry
};

// Bytes of a wheel, or of another file, to be streamed from its bundle.
struct WheelPart {
  const ServedFile* wheel = nullptr;
  ByteRange range;
};

// Bytes of a text that is shared, since it may be large.
struct TextPart {
  std::shared_ptr<const std::string> text;
  ByteRange range;
};

// A text that the view keeps: it is sent as it lies there. Who sends it holds the view.
struct KeptText {
  std::string_view text;
};

struct Response {
  unsigned status = 200;
  std::vector<std::pair<std::string, std::string>> headers;
  std::variant<std::string, WheelPart, TextPart, KeptText> body;
  RouteKind route = RouteKind::Other;  // what it was for, once something here answers it

  std::uint64_t body_size() const;
  // The body where it is a text, of a shared one the range; empty for bytes of a file.
  std::string_view text() const;
  // The header's value, empty when it is not there; `name` as the response spells it.
  std::string_view header(std::string_view name) const;
};

// A response of plain text: what is wrong, and what would be right.
Response refusal(unsigned status, const std::string& why);

}  // namespace sealift::offline_repo
