// SPDX-License-Identifier: Apache-2.0
// A request's head as values, once request_head.hpp has found no fault in it. Beast parses it; a pure function.
#pragma once

#include <boost/system/error_code.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "offline_repo/requests/response.hpp"

namespace sealift::offline_repo {

struct RequestMessage {
  Request request;  // without its body; forwarded_proto as the client says
  std::string authorization, agent;
  unsigned version = 11;    // of HTTP, times ten
  bool is_head = false;     // its answer has no body
  bool keep_alive = false;  // the client wants to go on after it
  bool chunked = false;
  bool has_one_host = false;
  std::uint64_t body_size = 0;  // 0: none, or it does not say
};

// Nothing, and why in `error`, where it is not HTTP. `limit`: bytes of a head at most.
std::optional<RequestMessage> parse_message(std::string_view head, std::size_t limit, boost::system::error_code& error);

}  // namespace sealift::offline_repo
