// SPDX-License-Identifier: Apache-2.0
// The only door to zstd: one frame in, one frame out, both as streams.
// Reading refuses what stock tools let pass: skippable or further frames, a frame without size or checksum, one that
// wants a dictionary or a large window, more output than was signed. Frame format: RFC 8878.
#pragma once

#include <zstd.h>

#include <functional>
#include <memory>

#include "sealift/bundle/core/bytes.hpp"
#include "sealift/bundle/core/error.hpp"
#include "sealift/bundle/archive/zstd_frame.hpp"

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
        frame_(std::move(where)) {
    ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, kMaxWindowLog);
  }

  void feed(ByteView input, const ByteSink& sink) {
    frame_.see(input);
    ZSTD_inBuffer in{input.data(), input.size(), 0};
    for (;;) {
      if (done_ && in.pos < in.size) frame_.refuse("bytes follow the zstd frame");
      if (done_) return;
      ZSTD_outBuffer out{buffer_.data(), buffer_.size(), 0};
      const std::size_t result = ZSTD_decompressStream(context_.get(), &out, &in);
      if (ZSTD_isError(result) != 0) frame_.refuse(ZSTD_getErrorName(result));
      if (out.pos > left_) frame_.refuse("more comes out than was signed");
      left_ -= out.pos;
      if (out.pos > 0) sink(ByteView(buffer_).first(out.pos));
      done_ = result == 0;
      if (!done_ && in.pos == in.size && out.pos < out.size) return;
    }
  }

  void finish() const {
    if (!done_) frame_.refuse("the zstd frame is not complete");
    if (left_ != 0) frame_.refuse("less comes out than was signed");
    if (frame_.said() != size_) frame_.refuse("the zstd frame says another size than was signed");
  }

 private:
  struct Freer {
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  };

  std::unique_ptr<ZSTD_DCtx, Freer> context_;
  Bytes buffer_;
  std::uint64_t size_;
  std::uint64_t left_;
  ZstdFrame frame_;
  bool done_ = false;
};

}  // namespace sealift::bundle
