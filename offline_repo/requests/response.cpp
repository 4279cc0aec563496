// SPDX-License-Identifier: Apache-2.0
// A handful of headers at most, so they are searched in order.
#include "offline_repo/requests/response.hpp"

namespace sealift::offline_repo {

std::uint64_t Response::body_size() const {
  const auto* part = std::get_if<WheelPart>(&body);
  return part != nullptr ? part->range.count : text().size();
}

std::string_view Response::text() const {
  if (const auto* own = std::get_if<std::string>(&body)) return *own;
  if (const auto* kept = std::get_if<KeptText>(&body)) return kept->text;
  const auto* part = std::get_if<TextPart>(&body);
  if (part == nullptr) return {};
  return std::string_view(*part->text)
      .substr(static_cast<std::size_t>(part->range.first), static_cast<std::size_t>(part->range.count));
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
