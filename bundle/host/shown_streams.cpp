// SPDX-License-Identifier: Apache-2.0
// A buffer before the stream's own; see shown_streams.hpp. What is written at once is handed on at once, since ranks
// share standard error and a line of one must not be cut by another's.
#include "bundle/host/shown_streams.hpp"

#include <iostream>
#include <mutex>
#include <streambuf>
#include <string>

#include "bundle/core/foreign_text.hpp"

namespace sealift::bundle {

namespace {

class ShownBuffer final : public std::streambuf {
 public:
  explicit ShownBuffer(std::ostream& stream) : stream_(stream), own_(stream.rdbuf()) { swap_in(this); }
  ~ShownBuffer() override {
    if (stream_.rdbuf() != this) return;  // somebody put another one there
    if (!begun_.empty()) write(terminal_text(begun_));
    swap_in(own_);
  }
  ShownBuffer(const ShownBuffer&) = delete;
  ShownBuffer& operator=(const ShownBuffer&) = delete;

 protected:
  int_type overflow(int_type letter) override {
    if (traits_type::eq_int_type(letter, traits_type::eof())) return traits_type::not_eof(letter);
    const char one = traits_type::to_char_type(letter);
    return xsputn(&one, 1) == 1 ? letter : traits_type::eof();
  }

  std::streamsize xsputn(const char* text, std::streamsize size) override {
    const std::lock_guard lock(guard_);
    begun_.append(text, static_cast<std::size_t>(size));
    const std::size_t whole = whole_letters(begun_);
    const std::string shown = terminal_text(std::string_view(begun_).substr(0, whole));
    begun_.erase(0, whole);
    return write(shown) ? size : 0;
  }

  int sync() override {
    const std::lock_guard lock(guard_);
    return own_->pubsync();
  }

 private:
  bool write(const std::string& text) {
    const auto size = static_cast<std::streamsize>(text.size());
    return own_->sputn(text.data(), size) == size;
  }

  // A stream forgets that it failed when it gets a buffer, and half of a result must not look like a whole one.
  void swap_in(std::streambuf* buffer) {
    const std::ios_base::iostate state = stream_.rdstate();
    stream_.rdbuf(buffer);
    stream_.setstate(state);
  }

  std::ostream& stream_;
  std::streambuf* own_;
  std::mutex guard_;
  std::string begun_;  // of a letter that is not whole yet
};

}  // namespace

struct ShownStreams::Buffers {
  ShownBuffer out{std::cout}, err{std::cerr};
};

ShownStreams::ShownStreams() : buffers_(std::make_unique<Buffers>()) {}

ShownStreams::~ShownStreams() = default;

}  // namespace sealift::bundle
