// SPDX-License-Identifier: Apache-2.0
// The body of a response on its way out: a text, or bytes of a wheel, of which it says in which chunk the next one is.
// The chunks themselves come checked from the cache, so a client gets a short answer and never a wrong one.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "offline_repo/requests/response.hpp"
#include "sealift/bundle/payload/payload_reader.hpp"

namespace sealift::offline_repo {

// Where the next byte of a body is.
struct ChunkPlace {
  std::uint64_t index;   // of the chunk in its payload
  std::uint64_t offset;  // in the chunk
  std::uint64_t count;   // of the body, from there to the end of the chunk or of the body
  bool goes_on;          // into the next chunk
};

class ResponseBody {
 public:
  ResponseBody() = default;  // none
  // `response` must outlive this.
  explicit ResponseBody(const Response& response);

  std::uint64_t size() const { return size_; }
  std::uint64_t sent() const { return sent_; }
  void add_sent(std::uint64_t count) { sent_ += count; }
  // The payload that it is read from; null for a text.
  const bundle::PayloadReader* payload() const { return payload_; }
  // Of the whole file that it is a part of; 0: it is a text.
  std::uint64_t file_size() const { return file_size_; }
  // Makes a text of what has a payload: its bytes, where they are too few to send from a file.
  void replace(std::string_view bytes) { text_ = bytes, payload_ = nullptr; }
  // For a text: what was not sent yet.
  std::string_view text_left() const { return text_.substr(static_cast<std::size_t>(sent_)); }
  // For what has a payload and was not sent whole.
  ChunkPlace place() const;

 private:
  std::string_view text_;
  const bundle::PayloadReader* payload_ = nullptr;
  std::uint64_t first_ = 0;  // in the payload
  std::uint64_t size_ = 0;
  std::uint64_t file_size_ = 0;
  std::uint64_t sent_ = 0;
};

}  // namespace sealift::offline_repo
