// SPDX-License-Identifier: Apache-2.0
// QLoRA's storage of a frozen flat: where codes, scales and statistics of `nf4` lie in each rank's message.
#pragma once

#include <sealift/train/bodies.hpp>
#include <sealift/train/flat/nf4.hpp>
#include <sealift/train/flat/nf4_decoder.hpp>
#include <sealift/train/flat/stored_shard.hpp>

namespace sealift::train {

/// Each parameter by itself, as bitsandbytes quantizes it. A message is [codes of two elements a byte, the first in the
/// high half][8 bits of each block's scale]. The largest scales and means are 4 bytes for 16384 elements: every rank
/// keeps those of the whole flat.
class Nf4Codec final : public StoredCodec {
 public:
  static constexpr std::int64_t kBlock = nf4::kBlock;

  /// Bytes of the message for a shard of `numel` elements, a multiple of `kBlock`.
  static constexpr std::int64_t message_bytes(std::int64_t numel) { return numel / 2 + numel / kBlock; }

  /// Bytes of what every rank keeps beside its message for a parameter of `numel` elements.
  static constexpr std::int64_t statistics_bytes(std::int64_t numel) {
    return 4 * (1 + nf4::groups_of(nf4::blocks_of(numel)));
  }

  SEALIFT_BODY at::Tensor store(const FlatLayout& layout, const ReadRange& read, const at::TensorOptions& options,
                                Groups& groups, const std::string& unit) override;

  SEALIFT_BODY void decode(at::Tensor whole, const at::Tensor& messages, std::int64_t ranks) const override;

 private:
  /// Where the statistics of parameter `index` begin: its mean, then the largest of each group of its scales.
  std::int64_t first_statistic(std::size_t index) const;

  /// Of all parameters, from the scales `all` [padded / kBlock] of the whole flat, on the host.
  at::Tensor statistics(const at::Tensor& all) const;

  /// 8 bits for each of the scales `own` of shard `rank`, on the host: bitsandbytes' quantize_blockwise.
  at::Tensor quantize_scales(const at::Tensor& own, std::int64_t rank) const;

  /// `part` of parameter `index` as a kernel decodes it, from the message that has it.
  EncodedNf4 encoded_part(const at::Tensor& message, std::size_t index, const Fragment& part) const;

  /// The scales of `part` of parameter `index`, from the message that has it. [blocks] fp32
  at::Tensor scales_of(const at::Tensor& message, std::size_t index, const Fragment& part) const;

  FlatLayout layout_;
  at::Tensor code_, map_;  ///< [16], [256] on the device
  at::Tensor statistics_;  ///< of each parameter its mean scale, then the largest of each group. fp32 on the device
};

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/flat/nf4_codec_inl.hpp>
#endif
