// SPDX-License-Identifier: Apache-2.0
// Of a body that nobody wants nothing is read, so the parser is told to skip it: it sees the head alone.
#include "offline_repo/server/request_message.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http.hpp>

namespace sealift::offline_repo {

namespace net = boost::asio;
namespace http = boost::beast::http;

namespace {

void add_value(std::string& all, std::string_view value) {
  if (!all.empty()) all += ", ";
  all += value;
}

// Clients of Hugging Face's hub up to 0.20, as they name themselves: what they are led to, they ask for without their
// token, be it on the same server.
bool is_old_hub_client(std::string_view agent) {
  constexpr std::string_view kName = "hf_hub/0.";
  const std::size_t at = agent.find(kName);
  if (at == agent.npos) return false;
  const std::string_view rest = agent.substr(at + kName.size());
  const std::size_t dot = rest.find('.');
  if (dot == 1) return rest[0] >= '0' && rest[0] <= '9';
  return dot == 2 && (rest[0] == '1' || rest.starts_with("20"));
}

// Each field once, in the order in which it came.
void note_fields(const http::request<http::empty_body>& message, RequestMessage& into) {
  int hosts = 0, protos = 0, prefixes = 0;
  Request& request = into.request;
  for (const auto& field : message) {
    const std::string_view value(field.value().data(), field.value().size());
    switch (field.name()) {
      case http::field::accept:
        add_value(request.accept, value);
        break;
      case http::field::range:
        add_value(request.range, value);
        break;
      case http::field::if_range:
        add_value(request.if_range, value);
        break;
      case http::field::if_none_match:
        add_value(request.if_none_match, value);
        break;
      case http::field::content_type:
        add_value(request.content_type, value);
        break;
      case http::field::accept_language:
        add_value(request.accept_language, value);
        break;
      case http::field::authorization:
        add_value(into.authorization, value);
        break;
      case http::field::user_agent:
        add_value(into.agent, value);
        break;
      case http::field::host:
        add_value(request.host, value), ++hosts;
        break;
      default:
        if (boost::beast::iequals(field.name_string(), "X-Forwarded-Proto")) request.forwarded_proto = value, ++protos;
        if (boost::beast::iequals(field.name_string(), "X-Forwarded-Prefix"))
          request.forwarded_prefix = value, ++prefixes;
    }
  }
  into.has_one_host = hosts == 1;
  request.loses_token = !into.authorization.empty() && is_old_hub_client(into.agent);
  if (protos != 1) request.forwarded_proto.clear();
  if (prefixes != 1) request.forwarded_prefix.clear();
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
  RequestMessage read{.request = {.method = std::string(message.method_string()),
                                  .target = std::string(message.target()),
                                  .accept = {},
                                  .range = {},
                                  .if_range = {},
                                  .if_none_match = {}},
                      .authorization = {},
                      .agent = {},
                      .version = message.version(),
                      .is_head = message.method() == http::verb::head,
                      .keep_alive = parser.keep_alive(),
                      .chunked = parser.chunked(),
                      .has_one_host = false,
                      .body_size = parser.content_length().value_or(0)};
  note_fields(message, read);
  return read;
}

}  // namespace sealift::offline_repo
