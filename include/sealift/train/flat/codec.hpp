// SPDX-License-Identifier: Apache-2.0
// How a shard travels in a gather: what a rank sends for it, and how the whole is made of what all ranks sent.
// `flat_param` encodes its shard, gathers the messages and decodes them; the optimizer's shard itself stays exact.
// Every rank decodes the same bytes, its own included, so that all ranks compute with the same values.
#pragma once

#include <sealift/train/compression.hpp>
#include <sealift/train/flat/buffer_pool.hpp>

#include <limits>

namespace sealift::train {

/// A shard's way through a gather. Stateless, so that one serves all flats.
class Codec {
 public:
  virtual ~Codec() = default;

  /// What a rank sends for its `shard` [n], of a whole with `options`; as many elements on every rank.
  virtual at::Tensor encode(const at::Tensor& shard, const at::TensorOptions& options) const = 0;

  /// Whether the messages of all ranks, one after the other, are the whole already.
  virtual bool is_whole() const = 0;

  /// whole [W * n] of `messages` [W * k], in rank order; called unless `is_whole`.
  virtual void decode(at::Tensor whole, const at::Tensor& messages, std::int64_t ranks) const = 0;
};

/// The shard in the whole's dtype and on its device; the shard itself when it is so already.
class CastCodec final : public Codec {
 public:
  at::Tensor encode(const at::Tensor& shard, const at::TensorOptions& options) const override {
    const bool same = shard.dtype() == options.dtype() && shard.device() == options.device();
    if (same || !detail::UseBuffers::current()) return shard.to(options, /*non_blocking=*/true);
    return detail::flat_buffer(shard.numel(), options).copy_(shard, /*non_blocking=*/true);
  }
  bool is_whole() const override { return true; }
  void decode(at::Tensor, const at::Tensor&, std::int64_t) const override {}
};

/// Bytes: of each block of `kBlock` elements, x = q * scale with q of dtype `Quantized` up to `kMost`, which is whole
/// numbers for int8, and scale = max|x| / kMost in fp32.
/// A message is [q of each element, up to a multiple of 4][scale of each block]: about 1 + 4 / kBlock bytes an element.
/// int8: |decoded - x| <= max|x of the block| / 253 before rounding to the whole's dtype; float8_e4m3fn: <= |x| / 16,
/// or max|x of the block| / 2^18 where that is more. Zero stays zero. A block with an infinity or a NaN decodes to
/// infinities and NaNs only, so a spoiled weight is not hidden.
/// A block may hold the end of one parameter and the start of the next, unless sizes are multiples of `kBlock`.
template <at::ScalarType Quantized, int Most>
class BlockCodec final : public Codec {
 public:
  static constexpr std::int64_t kBlock = 256;
  static constexpr int kMost = Most;

  /// Bytes of the message for a shard of `numel` elements; a multiple of 4.
  static std::int64_t message_bytes(std::int64_t numel) { return first_scale(numel) + blocks(numel) * kScaleBytes; }

  at::Tensor encode(const at::Tensor& shard, const at::TensorOptions& options) const override {
    at::NoGradGuard no_grad;
    const auto n = shard.numel(), rows = blocks(n);
    auto message = detail::flat_buffer(message_bytes(n), options.dtype(at::kByte));
    auto x = shard.to(options.dtype(at::kFloat), /*non_blocking=*/true);
    if (n % kBlock != 0) x = at::constant_pad_nd(x, {0, rows * kBlock - n});
    x = x.view({rows, kBlock});
    auto scales = scales_of(message, n).unsqueeze(1);
    at::amax_out(scales, x.abs(), {1}, /*keepdim=*/true);
    // The bound keeps tiny blocks from a scale that is rounded to nothing; NaN passes it.
    scales.div_(kMost).clamp_min_(std::numeric_limits<float>::min());
    auto quotients = x.div(scales);
    if (Quantized == at::kChar) quotients.round_();
    message.narrow(0, 0, n).view(Quantized).copy_(quotients.view({-1}).narrow(0, 0, n));
    message.narrow(0, n, first_scale(n) - n).zero_();
    return message;
  }

  bool is_whole() const override { return false; }

  void decode(at::Tensor whole, const at::Tensor& messages, std::int64_t ranks) const override {
    at::NoGradGuard no_grad;
    const auto n = whole.numel() / ranks, bytes = messages.numel() / ranks, full = n / kBlock, rest = n % kBlock;
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      const auto message = messages.narrow(0, rank * bytes, bytes);
      const auto scales = scales_of(message, n);
      auto part = whole.narrow(0, rank * n, n);
      part.copy_(message.narrow(0, 0, n).view(Quantized));
      if (full > 0) part.narrow(0, 0, full * kBlock).view({full, kBlock}).mul_(scales.narrow(0, 0, full).unsqueeze(1));
      if (rest > 0) part.narrow(0, n - rest, rest).mul_(scales.narrow(0, full, 1));  // 1-d, so that it stays fp32
    }
  }

 private:
  static constexpr std::int64_t kScaleBytes = sizeof(float);

  static std::int64_t blocks(std::int64_t numel) { return (numel + kBlock - 1) / kBlock; }

  static std::int64_t first_scale(std::int64_t numel) { return (numel + kScaleBytes - 1) / kScaleBytes * kScaleBytes; }

  /// Of the message for a shard of `numel` elements. [blocks]
  static at::Tensor scales_of(const at::Tensor& message, std::int64_t numel) {
    return message.narrow(0, first_scale(numel), blocks(numel) * kScaleBytes).view(at::kFloat);
  }
};

using Int8Codec = BlockCodec<at::kChar, 127>;
using Fp8Codec = BlockCodec<at::kFloat8_e4m3fn, 448>;

/// The codec that a job asks for, for shards of `dtype`.
inline std::shared_ptr<const Codec> make_codec(GatherCompression gather, at::ScalarType dtype) {
  // Whole numbers and booleans have no scale.
  if (gather == GatherCompression::Int8 && at::isFloatingType(dtype)) return std::make_shared<Int8Codec>();
  if (gather == GatherCompression::Fp8 && at::isFloatingType(dtype)) return std::make_shared<Fp8Codec>();
  return std::make_shared<CastCodec>();
}

}  // namespace sealift::train
