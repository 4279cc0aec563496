// SPDX-License-Identifier: Apache-2.0
// The only door to zstd: one frame in, one frame out, both as streams.
// Reading refuses what stock tools let pass: skippable or further frames, a frame without size or checksum, one that
// wants a dictionary or a large window, more output than was signed. Frame format: RFC 8878.
#pragma once

#include <zstd.h>

#include <functional>
#include <memory>
#include <optional>

#include "sealift/bundle/bytes.hpp"
#include "sealift/bundle/error.hpp"

namespace sealift::bundle {

using ByteSink = std::function<void(ByteView)>;

// Level 3, one thread, with checksum and content size: the same input gives the same bytes.
class ZstdEncoder {
 public:
  explicit ZstdEncoder(std::uint64_t input_size) : context_(ZSTD_createCCtx()), buffer_(ZSTD_CStreamOutSize()) {
    ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, 3);
    ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_checksumFlag, 1);
    ZSTD_CCtx_setPledgedSrcSize(context_.get(), input_size);
  }

  void feed(ByteView input, const ByteSink& sink) { run(input, ZSTD_e_continue, sink); }
  // Throws Format when fewer or more bytes were fed than promised.
  void finish(const ByteSink& sink) { run({}, ZSTD_e_end, sink); }

 private:
  struct Freer {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  };

  void run(ByteView input, ZSTD_EndDirective directive, const ByteSink& sink) {
    ZSTD_inBuffer in{input.data(), input.size(), 0};
    for (;;) {
      ZSTD_outBuffer out{buffer_.data(), buffer_.size(), 0};
      const std::size_t left = ZSTD_compressStream2(context_.get(), &out, &in, directive);
      if (ZSTD_isError(left) != 0)
        throw Error(ErrorCode::Format, {.what = "zstd cannot compress this", .got = ZSTD_getErrorName(left)});
      if (out.pos > 0) sink(ByteView(buffer_).first(out.pos));
      if (directive == ZSTD_e_end ? left == 0 : in.pos == in.size) return;
    }
  }

  std::unique_ptr<ZSTD_CCtx, Freer> context_;
  Bytes buffer_;
};

class ZstdDecoder {
 public:
  static constexpr int kMaxWindowLog = 23;  // 8 MiB, what RFC 8878 asks of every reader; our writer's is 2 MiB

  // `output_size` is the signed size of what comes out; `where` is for messages.
  ZstdDecoder(std::uint64_t output_size, std::string where)
      : context_(ZSTD_createDCtx()),
        buffer_(ZSTD_DStreamOutSize()),
        size_(output_size),
        left_(output_size),
        where_(std::move(where)) {
    ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, kMaxWindowLog);
  }

  void feed(ByteView input, const ByteSink& sink) {
    check_start(input);
    ZSTD_inBuffer in{input.data(), input.size(), 0};
    for (;;) {
      if (done_ && in.pos < in.size) refuse("bytes follow the zstd frame");
      if (done_) return;
      ZSTD_outBuffer out{buffer_.data(), buffer_.size(), 0};
      const std::size_t result = ZSTD_decompressStream(context_.get(), &out, &in);
      if (ZSTD_isError(result) != 0) refuse(ZSTD_getErrorName(result));
      if (out.pos > left_) refuse("more comes out than was signed");
      left_ -= out.pos;
      if (out.pos > 0) sink(ByteView(buffer_).first(out.pos));
      done_ = result == 0;
      if (!done_ && in.pos == in.size && out.pos < out.size) return;
    }
  }

  void finish() const {
    if (!done_) refuse("the zstd frame is not complete");
    if (left_ != 0) refuse("less comes out than was signed");
    if (said_ != size_) refuse("the zstd frame says another size than was signed");
  }

 private:
  struct Freer {
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  };

  // The first four bytes must be a zstd frame's (a skippable frame has others), the fifth says what it has. The size
  // follows; zstd itself does not compare it when the last block is empty and comes apart from the others.
  void check_start(ByteView input) {
    static constexpr unsigned char kMagic[4] = {0x28, 0xb5, 0x2f, 0xfd};
    for (std::size_t i = 0; i < input.size() && !said_ && seen_ < sizeof header_; ++i) {
      const unsigned char byte = header_[seen_] = std::to_integer<unsigned char>(input[i]);
      if (seen_ < 4 && byte != kMagic[seen_]) refuse("it does not start with a zstd frame");
      if (seen_ == 4) check_descriptor(byte);
      if (const auto size = ZSTD_getFrameContentSize(header_, ++seen_); size < ZSTD_CONTENTSIZE_ERROR) said_ = size;
    }
  }
  void check_descriptor(unsigned char descriptor) const {
    if ((descriptor & 0b11) != 0) refuse("the zstd frame wants a dictionary");
    if ((descriptor & 0b100) == 0) refuse("the zstd frame has no checksum");
    if ((descriptor & 0b1110'0000) == 0) refuse("the zstd frame does not say its size");
  }

  [[noreturn]] void refuse(const char* why) const {
    throw Error(ErrorCode::Format, {.what = "compressed bytes are not acceptable", .where = where_, .got = why});
  }

  std::unique_ptr<ZSTD_DCtx, Freer> context_;
  Bytes buffer_;
  std::uint64_t size_;
  std::uint64_t left_;
  std::string where_;
  unsigned char header_[18] = {};  // as long as a frame's header can be
  std::size_t seen_ = 0;
  std::optional<std::uint64_t> said_;  // by the frame's header
  bool done_ = false;
};

}  // namespace sealift::bundle
