// SPDX-License-Identifier: Apache-2.0
// Beast writes it, so that what HTTP/1.0 and 1.1 say differently is said right.
#include "offline_repo/server/response_header.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/beast/core/buffers_range.hpp>
#include <boost/beast/http.hpp>
#include <ctime>

namespace sealift::offline_repo {

namespace net = boost::asio;
namespace http = boost::beast::http;
using boost::beast::error_code;

namespace {

// The present moment as a header says it; made once a second.
const std::string& date() {
  thread_local std::time_t made = 0;
  thread_local std::string text;
  if (const std::time_t seconds = std::time(nullptr); seconds != made) {
    made = seconds;
    std::tm parts{};
    ::gmtime_r(&seconds, &parts);
    char now[64];
    text.assign(now, std::strftime(now, sizeof now, "%a, %d %b %Y %T GMT", &parts));
  }
  return text;
}

std::string serialized(http::response<http::empty_body>& header) {
  http::response_serializer<http::empty_body> serializer(header);
  std::string text;
  error_code error;
  while (!error && !serializer.is_header_done())
    serializer.next(error, [&](error_code&, const auto& buffers) {
      for (const net::const_buffer buffer : boost::beast::buffers_range_ref(buffers))
        text.append(static_cast<const char*>(buffer.data()), buffer.size());
      serializer.consume(net::buffer_size(buffers));
    });
  return text;
}

}  // namespace

std::string header_text(const Response& response, unsigned version, bool keep_alive) {
  http::response<http::empty_body> header(static_cast<http::status>(response.status), version);
  header.set(http::field::server, "sealift-repo");
  header.set(http::field::date, date());
  for (const auto& [name, value] : response.headers) header.set(name, value);
  if (response.status != 304) header.content_length(response.body_size());
  header.keep_alive(keep_alive);
  return serialized(header);
}

}  // namespace sealift::offline_repo
