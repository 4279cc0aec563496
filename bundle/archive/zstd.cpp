// SPDX-License-Identifier: Apache-2.0
#include "bundle/archive/zstd.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "sealift/bundle/core/error.hpp"

namespace sealift::bundle {

namespace {

constexpr int kLevel = 3;

}  // namespace

std::string ZstdEncoder::name() {
  return "zstd" + std::to_string(kLevel) + "-" + ZSTD_versionString();
}

ZstdEncoder::ZstdEncoder(std::uint64_t input_size) : context_(ZSTD_createCCtx()), buffer_(ZSTD_CStreamOutSize()) {
  ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, kLevel);
  ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_checksumFlag, 1);
  ZSTD_CCtx_setPledgedSrcSize(context_.get(), input_size);
}

void ZstdEncoder::feed(ByteView input, const ByteSink& sink) {
  run(input, ZSTD_e_continue, sink);
}

void ZstdEncoder::finish(const ByteSink& sink) {
  run({}, ZSTD_e_end, sink);
}

void ZstdEncoder::run(ByteView input, ZSTD_EndDirective directive, const ByteSink& sink) {
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

// Long-distance matching samples the prefix evenly, with a table for all of it: zstd's own choice looks at the window
// alone. A small prefix is searched thoroughly, a large one fast.
Bytes zstd_patch(ByteView prefix, ByteView piece) {
  constexpr std::size_t kSmall = std::size_t{16} << 20;
  const int bits = static_cast<int>(std::bit_width(prefix.size())), rate = std::max(2, bits - 22);
  struct Freer {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  };
  const std::unique_ptr<ZSTD_CCtx, Freer> context(ZSTD_createCCtx());
  const std::pair<ZSTD_cParameter, int> parameters[] = {{ZSTD_c_compressionLevel, prefix.size() <= kSmall ? 12 : 3},
                                                        {ZSTD_c_checksumFlag, 1},
                                                        {ZSTD_c_windowLog, kPatchWindowLog},
                                                        {ZSTD_c_enableLongDistanceMatching, 1},
                                                        {ZSTD_c_ldmHashRateLog, rate},
                                                        {ZSTD_c_ldmHashLog, std::clamp(bits - rate + 1, 10, 24)}};
  const auto check = [](std::size_t result) {
    if (ZSTD_isError(result) != 0)
      throw Error(ErrorCode::Format, {.what = "zstd cannot make a patch", .got = ZSTD_getErrorName(result)});
    return result;
  };
  for (const auto& [name, value] : parameters) check(ZSTD_CCtx_setParameter(context.get(), name, value));
  check(ZSTD_CCtx_refPrefix(context.get(), prefix.data(), prefix.size()));
  Bytes frame(ZSTD_compressBound(piece.size()));
  frame.resize(check(ZSTD_compress2(context.get(), frame.data(), frame.size(), piece.data(), piece.size())));
  frame.shrink_to_fit();
  return frame;
}

ZstdDecoder::ZstdDecoder(std::uint64_t output_size, std::string where, ByteView prefix)
    : ZstdDecoder(output_size, std::move(where)) {
  ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, kPatchWindowLog);
  ZSTD_DCtx_refPrefix(context_.get(), prefix.data(), prefix.size());
}

ZstdDecoder::ZstdDecoder(std::uint64_t output_size, std::string where)
    : context_(ZSTD_createDCtx()),
      buffer_(ZSTD_DStreamOutSize()),
      size_(output_size),
      left_(output_size),
      frame_(std::move(where)) {
  ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, kMaxWindowLog);
}

// A frame that zstd is given whole, with room for all that comes out, takes another way through zstd 1.5.4, which
// accepts other blocks than its stream does. So the first byte comes alone: what is accepted must not depend on the
// pieces.
void ZstdDecoder::feed(ByteView input, const ByteSink& sink) {
  frame_.see(input);
  ZSTD_inBuffer in{input.data(), begun_ ? input.size() : std::min<std::size_t>(1, input.size()), 0};
  begun_ |= !input.empty();
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
    if (!done_ && in.pos == in.size && out.pos < out.size) {
      if (in.size == input.size()) return;
      in.size = input.size();
    }
  }
}

void ZstdDecoder::finish() const {
  if (!done_) frame_.refuse("the zstd frame is not complete");
  if (left_ != 0) frame_.refuse("less comes out than was signed");
  if (frame_.said() != size_) frame_.refuse("the zstd frame says another size than was signed");
}

}  // namespace sealift::bundle
