// SPDX-License-Identifier: Apache-2.0
// How the shard of a frozen flat is kept: encoded once, when it gets its first values, and gathered as it lies.
// Above `codec`, whose seam this uses: a stored shard is its own message. `flat_param` makes one for each such flat.
// Blocks start again at every parameter and shards end between blocks, so values do not depend on the world.
#pragma once

#include <sealift/train/flat/codec.hpp>
#include <sealift/train/flat/fill_shard.hpp>

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>

#include <array>
#include <cmath>

namespace sealift::train {

/// Fills `out` [n], in a parameter's own dtype, with elements [begin, begin + n) of parameter `index` of a flat.
using ReadRange = std::function<void(std::size_t index, std::int64_t begin, at::Tensor out)>;

/// A codec whose message a rank keeps instead of its shard.
class StoredCodec : public Codec {
 public:
  /// The message for this rank's shard of `layout`, of elements with `options`, which `read` gives in pieces.
  /// Collective over `groups`; `unit` is for messages.
  virtual at::Tensor store(const FlatLayout& layout, const ReadRange& read, const at::TensorOptions& options,
                           Groups& groups, const std::string& unit) = 0;

  at::Tensor encode(const at::Tensor& shard, const at::TensorOptions& options) const final {
    return shard.to(options.device(), /*non_blocking=*/true);
  }
  bool is_whole() const final { return false; }
};

/// `Blocks` (an Int8Codec or Fp8Codec) applied once.
template <class Blocks>
class StoredBlocks final : public StoredCodec {
 public:
  at::Tensor store(const FlatLayout& layout, const ReadRange& read, const at::TensorOptions& options, Groups& groups,
                   const std::string&) override {
    const auto shard = torch::zeros({layout.shard_numel}, options);
    for (std::size_t i = 0; i < layout.placements.size(); ++i) {
      const auto part = layout.fragment(i, groups.shard.rank());
      if (part.numel > 0) read(i, part.in_parameter, shard.narrow(0, part.in_shard, part.numel));
    }
    return blocks_.encode(shard, options);
  }
  void decode(at::Tensor whole, const at::Tensor& messages, std::int64_t ranks) const override {
    blocks_.decode(std::move(whole), messages, ranks);
  }

 private:
  Blocks blocks_;
};

/// QLoRA's storage: NF4 with double quantization, the very values of bitsandbytes' CPU kernels
/// (quantize_4bit(blocksize=64, quant_type="nf4", compress_statistics=True)) for each parameter by itself:
///   x -> code / 15 of 16 quantiles of a normal distribution, times the block's scale; 64 elements a block
///   scale -> 8 bits of a dynamic map, times the largest of 256 blocks, plus the mean of all scales of the parameter
/// A message is [codes of two elements a byte, the first in the high half][8 bits of each block's scale]. The largest
/// scales and means are 4 bytes for 16384 elements: every rank keeps those of the whole flat.
/// The mean is summed as LibTorch does on one thread; bitsandbytes' own depends on its number of threads.
class Nf4Codec final : public StoredCodec {
 public:
  static constexpr std::int64_t kBlock = 64;       ///< elements of one scale; even, so that no byte is cut
  static constexpr std::int64_t kGroup = 256;      ///< scales of one largest
  static constexpr std::int64_t kPiece = 1 << 21;  ///< elements quantized at a time

  /// Bytes of the message for a shard of `numel` elements, a multiple of `kBlock`.
  static constexpr std::int64_t message_bytes(std::int64_t numel) { return numel / 2 + numel / kBlock; }

  /// Bytes of what every rank keeps beside its message for a parameter of `numel` elements.
  static constexpr std::int64_t statistics_bytes(std::int64_t numel) { return 4 * (1 + groups_of(blocks_of(numel))); }

  at::Tensor store(const FlatLayout& layout, const ReadRange& read, const at::TensorOptions& options, Groups& groups,
                   const std::string& unit) override {
    at::NoGradGuard no_grad;
    layout_ = layout;
    code_ = torch::tensor(at::ArrayRef<float>(kCode)).to(options.device());
    map_ = dynamic_map().to(options.device());
    const auto n = layout.shard_numel, rank = groups.shard.rank();
    auto message = torch::zeros({message_bytes(n)}, options.dtype(at::kByte));
    const auto scales = torch::zeros({n / kBlock}, options.dtype(at::kFloat));
    for (std::size_t i = 0; i < layout.placements.size(); ++i) {
      const auto part = layout.fragment(i, rank);
      for (std::int64_t done = 0; done < part.numel; done += kPiece) {
        const auto piece = torch::empty({std::min(kPiece, part.numel - done)}, options);
        read(i, part.in_parameter + done, piece);
        const auto at = part.in_shard + done;
        quantize(piece, message.narrow(0, at / 2, (piece.numel() + 1) / 2),
                 scales.narrow(0, at / kBlock, blocks_of(piece.numel())));
      }
    }
    auto all = scales;
    if (layout.shards > 1) {
      all = torch::empty({layout.shards * scales.numel()}, scales.options());
      groups.shard.all_gather(all, scales, unit).wait();
    }
    all = values_on_host(all);
    statistics_ = statistics(all).to(options.device());
    if (groups.world.size() > 1) groups.world.broadcast(statistics_, unit).wait();
    message.narrow(0, n / 2, n / kBlock).copy_(quantize_scales(all.narrow(0, rank * (n / kBlock), n / kBlock), rank));
    return message;
  }

  void decode(at::Tensor whole, const at::Tensor& messages, std::int64_t ranks) const override {
    at::NoGradGuard no_grad;
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      const auto bytes = messages.numel() / ranks;
      const auto message = messages.narrow(0, rank * bytes, bytes);
      for (std::size_t i = 0; i < layout_.placements.size(); ++i) {
        const auto part = layout_.fragment(i, rank);
        if (part.numel == 0) continue;
        dequantize(message.narrow(0, part.in_shard / 2, (part.numel + 1) / 2), scales_of(message, i, part),
                   whole.narrow(0, rank * layout_.shard_numel + part.in_shard, part.numel), code_);
      }
    }
  }

  /// Codes [n / 2 rounded up] and scales [n / kBlock rounded up] of `values` [n]; n is cut only at a parameter's end.
  /// The operations are bitsandbytes' own, whose last, shorter block is divided where others are multiplied.
  static void quantize(const at::Tensor& values, at::Tensor codes, at::Tensor scales) {
    constexpr double kTiny = 1e-38;
    const auto x = values.to(at::kFloat);
    const auto n = x.numel(), full = n / kBlock * kBlock;
    const auto scaled = torch::zeros({(n + 1) / 2 * 2}, x.options());
    if (full > 0) {
      const auto blocks = x.narrow(0, 0, full).view({-1, kBlock});
      const auto most = blocks.abs().amax({1});
      scales.narrow(0, 0, full / kBlock).copy_(most);
      scaled.narrow(0, 0, full).copy_((blocks * (1.0 / most.clamp_min(kTiny)).unsqueeze(1)).clamp(-1, 1).view({-1}));
    }
    if (full < n) {
      const auto rest = x.narrow(0, full, n - full);
      const auto most = rest.abs().amax().clamp_min(kTiny);
      scales.narrow(0, full / kBlock, 1).copy_(most);
      scaled.narrow(0, full, n - full).copy_((rest / most).clamp(-1, 1));
    }
    const auto code = torch::tensor(at::ArrayRef<float>(kCode)).to(x.device());
    const auto bounds = (code.narrow(0, 0, 15) + code.narrow(0, 1, 15)) / 2;
    const auto found = at::bucketize(scaled, bounds, /*out_int32=*/true).to(at::kByte).view({-1, 2});
    codes.copy_(found.select(1, 0).bitwise_left_shift(4).bitwise_or(found.select(1, 1)));
  }

  /// The reverse, into `out` [n] of any floating dtype; a loop on the CPU, elsewhere `dequantize_by_tensors`.
  static void dequantize(const at::Tensor& codes, const at::Tensor& scales, at::Tensor out, const at::Tensor& code) {
    if (!out.is_cpu()) return dequantize_by_tensors(codes, scales, std::move(out), code);
    const auto n = out.numel();
    const auto* bytes = codes.const_data_ptr<std::uint8_t>();
    const auto* scale = scales.const_data_ptr<float>();
    AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, out.scalar_type(), "nf4", [&] {
      auto* to = out.mutable_data_ptr<scalar_t>();
      at::parallel_for(0, blocks_of(n), 1024, [&](std::int64_t first, std::int64_t end) {
        for (auto block = first; block < end; ++block) {
          std::array<scalar_t, 16> table;
          for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<scalar_t>(kCode[i] * scale[block]);
          const auto stop = std::min(n, (block + 1) * kBlock);
          for (auto i = block * kBlock; i < stop; i += 2) {
            to[i] = table[bytes[i / 2] >> 4];
            if (i + 1 < stop) to[i + 1] = table[bytes[i / 2] & 15];
          }
        }
      });
    });
  }
  static void dequantize_by_tensors(const at::Tensor& codes, const at::Tensor& scales, at::Tensor out,
                                    const at::Tensor& code) {
    for (std::int64_t first = 0; first < out.numel(); first += kPiece) {
      const auto n = std::min(kPiece, out.numel() - first);
      const auto bytes = codes.narrow(0, first / 2, (n + 1) / 2);
      const auto index = at::stack({bytes.bitwise_right_shift(4), bytes.bitwise_and(15)}, 1).view({-1}).narrow(0, 0, n);
      auto x = at::constant_pad_nd(code.index_select(0, index.to(at::kInt)), {0, blocks_of(n) * kBlock - n});
      x.view({-1, kBlock}).mul_(scales.narrow(0, first / kBlock, blocks_of(n)).unsqueeze(1));
      out.narrow(0, first, n).copy_(x.narrow(0, 0, n));
    }
  }

  /// bitsandbytes' create_dynamic_map(): 8 bits of which the leading zeros are a decimal exponent. [256], ascending
  static at::Tensor dynamic_map() {
    constexpr std::array<double, 7> kPowers{1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1};
    std::vector<at::Tensor> parts{torch::tensor({0.0f, 1.0f})};
    for (std::size_t i = 0; i < kPowers.size(); ++i) {
      const auto bounds = torch::linspace(0.1, 1, (std::int64_t{1} << i) + 1, torch::kFloat);
      const auto means = (bounds.slice(0, 0, -1) + bounds.slice(0, 1)) / 2;
      parts.push_back(means * kPowers[i]);
      parts.push_back(means * -kPowers[i]);
    }
    return std::get<0>(at::cat(parts).sort());
  }

 private:
  static constexpr std::array<float, 16> kCode{
      -1.0f,
      -0.6961928009986877f,
      -0.5250730514526367f,
      -0.39491748809814453f,
      -0.28444138169288635f,
      -0.18477343022823334f,
      -0.09105003625154495f,
      0.0f,
      0.07958029955625534f,
      0.16093020141124725f,
      0.24611230194568634f,
      0.33791524171829224f,
      0.44070982933044434f,
      0.5626170039176941f,
      0.7229568362236023f,
      1.0f,
  };

  static constexpr std::int64_t blocks_of(std::int64_t numel) { return (numel + kBlock - 1) / kBlock; }
  static constexpr std::int64_t groups_of(std::int64_t blocks) { return (blocks + kGroup - 1) / kGroup; }

  /// Where the statistics of parameter `index` begin: its mean, then the largest of each group of its scales.
  std::int64_t first_statistic(std::size_t index) const {
    std::int64_t first = 0;
    for (std::size_t i = 0; i < index; ++i) first += statistics_bytes(layout_.placements[i].numel) / 4;
    return first;
  }

  /// Of all parameters, from the scales `all` [padded / kBlock] of the whole flat, on the host.
  at::Tensor statistics(const at::Tensor& all) const {
    std::vector<at::Tensor> result;
    for (const auto& place : layout_.placements) {
      const auto scales = all.narrow(0, place.offset / kBlock, blocks_of(place.numel));
      const auto mean = scales.numel() == 0 ? torch::zeros({}) : mean_by_one_thread(scales);
      const auto centered = (scales - mean).abs();
      const auto groups = groups_of(scales.numel());
      const auto padded = at::constant_pad_nd(centered, {0, groups * kGroup - scales.numel()}).view({groups, kGroup});
      result.push_back(mean.view({1}));
      result.push_back(groups == 0 ? torch::zeros({0}) : padded.amax({1}));
    }
    return at::cat(result);
  }

  static at::Tensor mean_by_one_thread(const at::Tensor& values) {
    const auto threads = at::get_num_threads();
    if (threads > 1) at::set_num_threads(1);
    auto mean = values.mean();
    if (threads > 1) at::set_num_threads(threads);
    return mean;
  }

  /// 8 bits for each of the scales `own` of shard `rank`, on the host: bitsandbytes' quantize_blockwise.
  at::Tensor quantize_scales(const at::Tensor& own, std::int64_t rank) const {
    auto result = torch::zeros({own.numel()}, at::kByte);
    const auto statistics = values_on_host(statistics_);
    for (std::size_t i = 0; i < layout_.placements.size(); ++i) {
      const auto part = layout_.fragment(i, rank);
      const auto* known = statistics.const_data_ptr<float>() + first_statistic(i);
      const auto first = part.in_shard / kBlock, before = part.in_parameter / kBlock;
      const auto centered = own.narrow(0, first, blocks_of(part.numel)) - known[0];
      const auto* values = centered.const_data_ptr<float>();
      auto* to = result.mutable_data_ptr<std::uint8_t>() + first;
      for (std::int64_t block = 0; block < centered.numel(); ++block) {
        to[block] = quantize_scale(values[block], known[1 + (before + block) / kGroup]);
      }
    }
    return result;
  }

  /// By a table of 65536 bins, as bitsandbytes does it: its rounding differs from that of the nearest entry.
  static std::uint8_t quantize_scale(float value, float most) {
    static const auto kNearest = nearest_entries();
    if (most == 0) return 0;
    const auto scaled = std::clamp(value * (1.0f / most), -1.0f, 1.0f);
    if (std::isnan(scaled)) return 0;
    return kNearest[static_cast<std::uint16_t>(std::fma((scaled + 1) * 0.5f, 65535.0f, 0.5f))];
  }
  static std::vector<std::uint8_t> nearest_entries() {
    const auto map = dynamic_map();
    const auto* entry = map.const_data_ptr<float>();
    std::vector<std::uint8_t> result(65536);
    std::size_t nearest = 0;
    for (std::size_t i = 0; i < result.size(); ++i) {
      const float value = -1.0f + 2.0f * static_cast<float>(i) / 65535.0f;
      while (nearest < 255 && 0.5f * (entry[nearest] + entry[nearest + 1]) < value) ++nearest;
      result[i] = static_cast<std::uint8_t>(nearest);
    }
    return result;
  }

  /// The scales of `part` of parameter `index`, from the message that has it. [blocks] fp32
  at::Tensor scales_of(const at::Tensor& message, std::size_t index, const Fragment& part) const {
    const auto blocks = blocks_of(part.numel), first = part.in_parameter / kBlock, group = first / kGroup;
    const auto known = first_statistic(index);
    const auto most = statistics_.narrow(0, known + 1 + group, groups_of(first % kGroup + blocks));
    const auto codes = message.narrow(0, layout_.shard_numel / 2 + part.in_shard / kBlock, blocks);
    auto scales = map_.index_select(0, codes.to(at::kInt));
    scales.mul_(most.repeat_interleave(kGroup).narrow(0, first % kGroup, blocks));
    return scales.add_(statistics_[known]);
  }

  FlatLayout layout_;
  at::Tensor code_, map_;  ///< [16], [256] on the device
  at::Tensor statistics_;  ///< of each parameter its mean scale, then the largest of each group. fp32 on the device
};

/// Elements at which parameters start and shards end in a flat that is stored so.
inline std::int64_t alignment_of(StoredAs stored) {
  switch (stored) {
    case StoredAs::Plain:
      return FlatLayout::kAlign;
    case StoredAs::Nf4:
      return Nf4Codec::kBlock;
    case StoredAs::Int8:
    case StoredAs::Fp8:
      return Int8Codec::kBlock;
  }
  TORCH_CHECK(false, "unknown storage ", static_cast<int>(stored));
}

/// A codec for one flat; null for `Plain`.
inline std::shared_ptr<StoredCodec> make_stored_codec(StoredAs stored) {
  switch (stored) {
    case StoredAs::Plain:
      return nullptr;
    case StoredAs::Nf4:
      return std::make_shared<Nf4Codec>();
    case StoredAs::Int8:
      return std::make_shared<StoredBlocks<Int8Codec>>();
    case StoredAs::Fp8:
      return std::make_shared<StoredBlocks<Fp8Codec>>();
  }
  TORCH_CHECK(false, "unknown storage ", static_cast<int>(stored));
}

/// What a parameter of `numel` elements of `dtype` takes when it is stored so, over all ranks that shard it, without
/// padding at the ends of parameters and shards, in bytes.
inline std::int64_t stored_bytes(StoredAs stored, std::int64_t numel, at::ScalarType dtype) {
  if (stored == StoredAs::Plain) return numel * static_cast<std::int64_t>(c10::elementSize(dtype));
  const auto align = alignment_of(stored), whole = (numel + align - 1) / align * align;
  return stored == StoredAs::Nf4 ? Nf4Codec::message_bytes(whole) : Int8Codec::message_bytes(whole);
}

}  // namespace sealift::train
