// SPDX-License-Identifier: Apache-2.0
// The body of a response on its way out, piece by piece: a text, or checked bytes of a wheel from its bundle.
// A wheel's piece is shown only after the digest of its chunk was right, so a client gets a short answer and never a
// wrong one.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "offline_repo/server/response.hpp"
#include "sealift/bundle/core/byte_source.hpp"

namespace sealift::offline_repo {

class ResponseBody {
 public:
  ResponseBody() = default;  // none
  // `response` must outlive this.
  explicit ResponseBody(const Response& response);

  std::uint64_t size() const { return size_; }
  std::uint64_t sent() const { return sent_; }
  // At least one byte of what was not sent yet, valid until the next call. Not for a body that was sent whole. Throws
  // Digest for a damaged chunk, Io for one that cannot be read. Memory: one chunk.
  bundle::ByteView next_piece();
  void add_sent(std::uint64_t count) { sent_ += count; }

 private:
  std::string_view text_;                      // the body, unless it is of a wheel
  std::unique_ptr<bundle::ByteSource> wheel_;  // the whole wheel
  std::uint64_t first_ = 0;                    // of the range, in the wheel
  std::uint64_t size_ = 0;
  std::uint64_t sent_ = 0;
};

}  // namespace sealift::offline_repo
