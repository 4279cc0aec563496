// SPDX-License-Identifier: Apache-2.0
// NF4 with double quantization: the very values of bitsandbytes' CPU kernels
// (quantize_4bit(blocksize=64, quant_type="nf4", compress_statistics=True)).
//   x -> code / 15 of 16 quantiles of a normal distribution, times the block's scale; 64 elements a block
//   scale -> 8 bits of a dynamic map, times the largest of 256 blocks, plus the mean of all scales of the parameter
// Arithmetic alone: knows neither flats nor ranks. `nf4_codec` says where the numbers lie.
// Mirrored by trainer/plan/model_shape.cpp (bytes of the encoding): change both.
#pragma once

#include <torch/torch.h>

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace sealift::train::nf4 {

inline constexpr std::int64_t kBlock = 64;       ///< elements of one scale; even, so that no byte is cut
inline constexpr std::int64_t kGroup = 256;      ///< scales of one largest
inline constexpr std::int64_t kPiece = 1 << 21;  ///< elements worked on at a time

constexpr std::int64_t blocks_of(std::int64_t numel) {
  return (numel + kBlock - 1) / kBlock;
}
constexpr std::int64_t groups_of(std::int64_t blocks) {
  return (blocks + kGroup - 1) / kGroup;
}

inline constexpr std::array<float, 16> kCode{
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

/// Codes [n / 2 rounded up] and scales [n / kBlock rounded up] of `values` [n]; n is cut only at a parameter's end.
/// The operations are bitsandbytes' own, whose last, shorter block is divided where others are multiplied.
inline void quantize(const at::Tensor& values, at::Tensor codes, at::Tensor scales) {
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

/// The reverse, into `out` [n] of any floating dtype, on any device.
inline void dequantize_by_tensors(const at::Tensor& codes, const at::Tensor& scales, at::Tensor out,
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

/// The same; a loop on the CPU, elsewhere `dequantize_by_tensors`.
inline void dequantize(const at::Tensor& codes, const at::Tensor& scales, at::Tensor out, const at::Tensor& code) {
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

/// bitsandbytes' create_dynamic_map(): 8 bits of which the leading zeros are a decimal exponent. [256], ascending
inline at::Tensor dynamic_map() {
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

/// The entry of `dynamic_map` for each of 65536 bins of [-1, 1].
inline std::vector<std::uint8_t> nearest_entries() {
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

/// The entry for one `value` of a group whose largest is `most`. By those bins, as bitsandbytes does it: its rounding
/// differs from that of the nearest entry.
inline std::uint8_t quantize_scale(float value, float most) {
  static const auto kNearest = nearest_entries();
  if (most == 0) return 0;
  const auto scaled = std::clamp(value * (1.0f / most), -1.0f, 1.0f);
  if (std::isnan(scaled)) return 0;
  return kNearest[static_cast<std::uint16_t>(std::fma((scaled + 1) * 0.5f, 65535.0f, 0.5f))];
}

/// The mean of `values` as LibTorch sums it on one thread; bitsandbytes' own depends on its number of threads.
inline at::Tensor mean_by_one_thread(const at::Tensor& values) {
  const auto threads = at::get_num_threads();
  if (threads > 1) at::set_num_threads(1);
  auto mean = values.mean();
  if (threads > 1) at::set_num_threads(threads);
  return mean;
}

}  // namespace sealift::train::nf4
