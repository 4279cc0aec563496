// SPDX-License-Identifier: Apache-2.0
// A wheel is stored as it was published (the catalogue refuses others), so its bytes are bytes of the payload.
#include "offline_repo/server/response_body.hpp"

#include <algorithm>

namespace sealift::offline_repo {

ResponseBody::ResponseBody(const Response& response) : size_(response.body_size()) {
  if (const auto* part = std::get_if<WheelPart>(&response.body)) {
    payload_ = &part->wheel->in->payload();
    file_size_ = part->wheel->entry->stored_size;
    first_ = part->wheel->entry->offset + part->range.first;
  } else {
    text_ = response.text();
  }
}

ChunkPlace ResponseBody::place() const {
  const bundle::ChunkLayout& layout = payload_->layout();
  const std::uint64_t position = first_ + sent_, index = layout.at(position);
  const std::uint64_t offset = position - layout.begin_of(index), in_chunk = layout.size_of(index) - offset;
  const std::uint64_t left = size_ - sent_;
  return {.index = index, .offset = offset, .count = std::min(in_chunk, left), .goes_on = left > in_chunk};
}

}  // namespace sealift::offline_repo
