// SPDX-License-Identifier: Apache-2.0
// A handful of headers at most, so they are searched in order.
#include "offline_repo/requests/response.hpp"

namespace sealift::offline_repo {

std::uint64_t Response::body_size() const {
  if (const auto* part = std::get_if<WheelPart>(&body)) return part->range.count;
  if (const auto* part = std::get_if<TextPart>(&body)) return part->range.count;
  return std::get<std::string>(body).size();
}

std::string_view Response::header(std::string_view name) const {
  for (const auto& [key, value] : headers)
    if (key == name) return value;
  return {};
}

Response refusal(unsigned status, const std::string& why) {
  return {.status = status, .headers = {{"Content-Type", "text/plain; charset=utf-8"}}, .body = why + "\n"};
}

}  // namespace sealift::offline_repo
