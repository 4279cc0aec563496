// SPDX-License-Identifier: Apache-2.0
// The bodies of nf4.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/flat/nf4.hpp>

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>

namespace sealift::train {

namespace nf4 {

SEALIFT_BODY void quantize(const at::Tensor& values, at::Tensor codes, at::Tensor scales) {
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

SEALIFT_BODY void dequantize_by_tensors(const at::Tensor& codes, const at::Tensor& scales, at::Tensor out,
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

SEALIFT_BODY void dequantize(const at::Tensor& codes, const at::Tensor& scales, at::Tensor out,
                             const at::Tensor& code) {
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

SEALIFT_BODY at::Tensor dynamic_map() {
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

SEALIFT_BODY std::vector<std::uint8_t> nearest_entries() {
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

SEALIFT_BODY std::uint8_t quantize_scale(float value, float most) {
  static const auto kNearest = nearest_entries();
  if (most == 0) return 0;
  const auto scaled = std::clamp(value * (1.0f / most), -1.0f, 1.0f);
  if (std::isnan(scaled)) return 0;
  return kNearest[static_cast<std::uint16_t>(std::fma((scaled + 1) * 0.5f, 65535.0f, 0.5f))];
}

SEALIFT_BODY at::Tensor mean_by_one_thread(const at::Tensor& values) {
  const auto threads = at::get_num_threads();
  if (threads > 1) at::set_num_threads(1);
  auto mean = values.mean();
  if (threads > 1) at::set_num_threads(threads);
  return mean;
}

}  // namespace nf4

}  // namespace sealift::train
