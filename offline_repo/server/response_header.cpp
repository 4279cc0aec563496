// SPDX-License-Identifier: Apache-2.0
// Written in one piece, since a header is most of what a small range costs. A connection lasts unless it says
// otherwise in HTTP/1.1, and ends unless it says otherwise in 1.0 (RFC 9112, 9.3).
#include "offline_repo/server/response_header.hpp"

#include <boost/beast/http/status.hpp>
#include <ctime>

namespace sealift::offline_repo {

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

void add_field(std::string& text, std::string_view name, std::string_view value) {
  text.append(name).append(": ").append(value).append("\r\n");
}

}  // namespace

std::string header_text(const Response& response, unsigned version, bool keep_alive) {
  std::string text;
  text.reserve(640);
  text.append(version == 10 ? "HTTP/1.0 " : "HTTP/1.1 ").append(std::to_string(response.status)).push_back(' ');
  text.append(boost::beast::http::obsolete_reason(static_cast<boost::beast::http::status>(response.status)));
  text.append("\r\nServer: sealift-repo\r\n");
  add_field(text, "Date", date());
  for (const auto& [name, value] : response.headers) add_field(text, name, value);
  if (response.status != 304) add_field(text, "Content-Length", std::to_string(response.body_size()));
  if (version == 10 && keep_alive) text.append("Connection: keep-alive\r\n");
  if (version != 10 && !keep_alive) text.append("Connection: close\r\n");
  return text.append("\r\n");
}

}  // namespace sealift::offline_repo
