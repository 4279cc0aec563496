// SPDX-License-Identifier: Apache-2.0
// The only door to zstd: one frame in, one frame out, both as streams.
// Reading refuses what stock tools let pass: skippable or further frames, a frame without size or checksum, one that
// wants a dictionary or a large window, more output than was signed. Frame format: RFC 8878.
#pragma once

#include <zstd.h>

#include <cstdint>
#include <memory>
#include <string>

#include "bundle/archive/zstd_frame.hpp"
#include "sealift/bundle/core/byte_source.hpp"
#include "sealift/bundle/core/bytes.hpp"

namespace sealift::bundle {

// Level 3, one thread, with checksum and content size: the same input gives the same bytes.
class ZstdEncoder {
 public:
  // Of what decides about the bytes that come out: level and version, e.g. "zstd3-1.5.4".
  static std::string name();

  // `input_size` is the number of bytes that will be fed.
  explicit ZstdEncoder(std::uint64_t input_size);

  void feed(ByteView input, const ByteSink& sink);
  // Throws Format when fewer or more bytes were fed than promised.
  void finish(const ByteSink& sink);

 private:
  struct Freer {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  };

  void run(ByteView input, ZSTD_EndDirective directive, const ByteSink& sink);

  std::unique_ptr<ZSTD_CCtx, Freer> context_;
  Bytes buffer_;
};

// Bytes of a patch decode to at most this many, so that what both sides keep in memory does not grow with a file; the
// prefix may be larger by far, since a frame's whole content may refer to all of it.
inline constexpr int kPatchWindowLog = 25;
inline constexpr std::uint64_t kPatchPiece = std::uint64_t{1} << kPatchWindowLog;

// `piece`, of at most kPatchPiece bytes, as one frame that refers to `prefix`. The same bytes give the same frame.
Bytes zstd_patch(ByteView prefix, ByteView piece);

class ZstdDecoder {
 public:
  static constexpr int kMaxWindowLog = 23;  // 8 MiB, what RFC 8878 asks of every reader; our writer's is 2 MiB

  // `output_size` is the signed size of what comes out, in bytes; `where` is for messages.
  ZstdDecoder(std::uint64_t output_size, std::string where);
  // Of a frame that refers to `prefix`, which must outlive this, as `zstd --patch-from` makes it.
  ZstdDecoder(std::uint64_t output_size, std::string where, ByteView prefix);

  // Gives what comes out to `sink`, never more than was signed; throws Format.
  void feed(ByteView input, const ByteSink& sink);
  // Throws Format unless the frame is complete and exactly as large as was signed.
  void finish() const;

 private:
  struct Freer {
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  };

  std::unique_ptr<ZSTD_DCtx, Freer> context_;
  Bytes buffer_;
  std::uint64_t size_;
  std::uint64_t left_;
  ZstdFrame frame_;
  bool begun_ = false;
  bool done_ = false;
};

}  // namespace sealift::bundle
