// SPDX-License-Identifier: Apache-2.0
// The CPU with the trainer's own kernels, for tests of pieces: in any order of threads, from drawn values and
// addresses.
#pragma once

#include "trainer/kernels/launcher.hpp"

#include <torch/torch.h>

#include <array>
#include <limits>
#include <random>

namespace sealift::test {

inline constexpr std::array kOrders{trainer::kernels::Order::Given, trainer::kernels::Order::Reversed,
                                    trainer::kernels::Order::Drawn};

/// The CPU has kernels while it lives, which run in an order.
class OnHost {
 public:
  explicit OnHost(trainer::kernels::Order order) {
    trainer::kernels::register_launcher(at::kCPU, std::make_shared<trainer::kernels::HostLauncher>(order));
    trainer::kernels::forget_kernels_that_ran();
  }
  OnHost(const OnHost&) = delete;
  OnHost& operator=(const OnHost&) = delete;
  ~OnHost() { trainer::kernels::register_launcher(at::kCPU, nullptr); }
};

struct Draw {
  std::mt19937 random{11};

  std::int64_t below(std::int64_t end) { return static_cast<std::int64_t>(random()) % end; }
  bool often() { return below(4) != 0; }
  at::ScalarType type() { return std::array{at::kFloat, at::kBFloat16, at::kHalf}[static_cast<std::size_t>(below(3))]; }

  /// Numbers of a normal kind, here and there NaN, an infinity or 0.
  at::Tensor values(at::IntArrayRef sizes, at::ScalarType type) {
    auto all = at::randn(sizes, at::kFloat);
    if (below(3) == 0) {
      auto* numbers = all.mutable_data_ptr<float>();
      constexpr float kInfinity = std::numeric_limits<float>::infinity();
      const std::array odd{std::numeric_limits<float>::quiet_NaN(), kInfinity, -kInfinity, 0.0F, 3e38F, 1e-40F};
      for (const float each : odd) numbers[below(all.numel())] = each;
    }
    return all.to(type);
  }

  /// The same rows somewhere else in memory: from an odd address, with gaps between.
  at::Tensor rows(const at::Tensor& values) {
    const auto width = values.size(-1), rows = values.numel() / std::max<std::int64_t>(width, 1);
    const auto from = often() ? 0 : below(8), gap = often() ? 0 : below(9);
    const auto memory = at::empty({from + rows * (width + gap)}, values.options());
    auto sizes = values.sizes().vec();
    sizes.back() = width + gap;
    return memory.narrow(0, from, memory.numel() - from).view(sizes).narrow(-1, 0, width).copy_(values);
  }
};

/// Equal to the bit, but for the bits of NaN and the sign of 0.
inline bool same(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type() &&
         at::isclose(a, b, /*rtol=*/0, /*atol=*/0, /*equal_nan=*/true).all().item<bool>();
}

/// |a - b| <= part * scale + least everywhere, NaN and infinities alike.
inline bool within(const at::Tensor& a, const at::Tensor& b, double part, const at::Tensor& scale, double least) {
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) return false;
  const auto x = a.to(at::kDouble), y = b.to(at::kDouble);
  const auto near = (x - y).abs() <= scale.to(at::kDouble).abs() * part + least;
  return near.logical_or(x == y).logical_or(x.isnan().logical_and(y.isnan())).all().item<bool>();
}

}  // namespace sealift::test
