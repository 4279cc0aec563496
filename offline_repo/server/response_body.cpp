// SPDX-License-Identifier: Apache-2.0
// Pieces are small beside a chunk: each has a deadline of its own, which a slow client must be able to meet.
#include "offline_repo/server/response_body.hpp"

#include <algorithm>

namespace sealift::offline_repo {

namespace {
constexpr std::uint64_t kPiece = std::uint64_t{256} << 10;
}

ResponseBody::ResponseBody(const Response& response) : size_(response.body_size()) {
  if (const auto* part = std::get_if<WheelPart>(&response.body)) {
    wheel_ = part->wheel->in->stored_in_order(*part->wheel->entry);
    first_ = part->range.first;
  } else {
    text_ = std::get<std::string>(response.body);
  }
}

bundle::ByteView ResponseBody::next_piece() {
  const auto wanted = static_cast<std::size_t>(std::min(size_ - sent_, kPiece));
  if (wheel_) return wheel_->view(first_ + sent_, wanted);
  return bundle::as_bytes(text_.substr(static_cast<std::size_t>(sent_), wanted));
}

}  // namespace sealift::offline_repo
