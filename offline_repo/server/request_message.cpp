// SPDX-License-Identifier: Apache-2.0
// Of a body that nobody wants nothing is read, so the parser is told to skip it: it sees the head alone.
#include "offline_repo/server/request_message.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http.hpp>

namespace sealift::offline_repo {

namespace net = boost::asio;
namespace http = boost::beast::http;

namespace {

std::string values_of(const http::request<http::empty_body>& message, http::field field) {
  std::string all;
  const auto [begin, end] = message.equal_range(field);
  for (auto it = begin; it != end; ++it) all += (all.empty() ? "" : ", ") + std::string(it->value());
  return all;
}

}  // namespace

std::optional<RequestMessage> parse_message(std::string_view head, std::size_t limit,
                                            boost::system::error_code& error) {
  http::request_parser<http::empty_body> parser;
  parser.header_limit(static_cast<std::uint32_t>(limit));
  parser.skip(true);
  parser.put(net::buffer(head), error);
  if (error || !parser.is_header_done()) return std::nullopt;
  const http::request<http::empty_body>& message = parser.get();
  return RequestMessage{
      .request = {.method = std::string(message.method_string()),
                  .target = std::string(message.target()),
                  .accept = values_of(message, http::field::accept),
                  .range = values_of(message, http::field::range),
                  .if_range = values_of(message, http::field::if_range),
                  .if_none_match = values_of(message, http::field::if_none_match),
                  .content_type = values_of(message, http::field::content_type),
                  .host = values_of(message, http::field::host),
                  .accept_language = values_of(message, http::field::accept_language),
                  .forwarded_proto =
                      message.count("X-Forwarded-Proto") == 1 ? std::string(message["X-Forwarded-Proto"]) : ""},
      .authorization = values_of(message, http::field::authorization),
      .agent = values_of(message, http::field::user_agent),
      .version = message.version(),
      .is_head = message.method() == http::verb::head,
      .keep_alive = parser.keep_alive(),
      .chunked = parser.chunked(),
      .has_one_host = message.count(http::field::host) == 1,
      .body_size = parser.content_length().value_or(0)};
}

}  // namespace sealift::offline_repo
