// SPDX-License-Identifier: Apache-2.0
#include "trainer/kernels/head.hpp"

#include "trainer/kernels/head_body.hpp"
#include "trainer/kernels/operands.hpp"

#include <ATen/ATen.h>

#include <limits>

namespace sealift::trainer::kernels {
namespace {

constexpr std::size_t kHeadPackBytes = 16;

template <class Value, unsigned kAtOnce>
constexpr Kernel head_of(const char* name) {
  return {name, kHeadThreads, run_on_host<HeadArgs, head<Value, kAtOnce, HostBlock>>};
}

constexpr OfTypes kHead{head_of<float, 1>("sealift_head_fp32"), head_of<Bf16, 1>("sealift_head_bf16"),
                        head_of<Fp16, 1>("sealift_head_fp16")};
constexpr OfTypes kHeadPacked{head_of<float, 4>("sealift_head_fp32_by_4"), head_of<Bf16, 8>("sealift_head_bf16_by_8"),
                              head_of<Fp16, 8>("sealift_head_fp16_by_8")};

bool takes_head(const at::Tensor& logits, const at::Tensor& labels, const at::Tensor& values,
                const at::Tensor& normalizers) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max() / 2;  // so that no column's number wraps
  if (!is_taken(logits.scalar_type()) || logits.dim() != 2 || !logits.is_contiguous() || logits.numel() == 0 ||
      logits.size(0) > kMost || logits.size(1) > kMost || labels.scalar_type() != at::kLong) {
    return false;
  }
  for (const auto* each : {&labels, &values, &normalizers}) {
    if (each->dim() != 1 || each->size(0) != logits.size(0) || !each->is_contiguous() ||
        each->device() != logits.device()) {
      return false;
    }
  }
  return values.scalar_type() == at::kFloat && normalizers.scalar_type() == at::kFloat;
}

bool head_by(Launcher& launcher, const at::Tensor& logits, const at::Tensor& labels, const at::Tensor& values,
             const at::Tensor& normalizers, bool slopes) {
  if (!takes_head(logits, labels, values, normalizers)) return false;
  const HeadArgs args{.logits = logits.mutable_data_ptr(),
                      .labels = reinterpret_cast<const long long*>(labels.const_data_ptr<std::int64_t>()),
                      .values = values.mutable_data_ptr<float>(),
                      .normalizers = normalizers.mutable_data_ptr<float>(),
                      .columns = static_cast<unsigned>(logits.size(1)),
                      .slopes = slopes};
  const auto at_once = static_cast<std::int64_t>(kHeadPackBytes / logits.element_size());
  const bool packed = logits.size(1) % at_once == 0 && begins_at(logits, kHeadPackBytes);
  launcher.launch((packed ? kHeadPacked : kHead).of(logits.scalar_type()), static_cast<unsigned>(logits.size(0)), &args,
                  sizeof args, logits.device());
  return true;
}

}  // namespace

bool head(const at::Tensor& logits, const at::Tensor& labels, const at::Tensor& values, const at::Tensor& normalizers,
          bool slopes) {
  const auto launcher = launcher_of(logits.device());
  if (!launcher || !head_by(*launcher, logits, labels, values, normalizers, slopes)) return false;
  note_kernel("head");
  return true;
}

std::vector<Kernel> head_kernels() {
  std::vector<Kernel> all;
  for (const auto& each : {kHead, kHeadPacked}) all.insert(all.end(), {each.fp32, each.bf16, each.fp16});
  return all;
}

std::string head_fault(Launcher& launcher, c10::Device device) {
  HostLauncher host;
  for (const auto type : {at::kFloat, at::kBFloat16, at::kHalf}) {
    for (const std::int64_t columns : {1027, 4128}) {  // one value a thread, and 16 bytes
      const auto logits = (at::arange(3 * columns, at::kFloat) * 0.37).sin().mul(8).to(type).view({3, columns});
      const auto labels = at::arange(3, at::kLong) * (columns / 2 - 1);
      const auto results = [&](Launcher& by, c10::Device where) {
        const auto both = at::empty({2, 3}, at::TensorOptions(where).dtype(at::kFloat));
        const auto slopes = logits.to(where, type, /*non_blocking=*/false, /*copy=*/true);
        TORCH_CHECK(head_by(by, slopes, labels.to(where), both[0], both[1], true), "head does not take its trial");
        return std::pair(both.cpu(), slopes.cpu());
      };
      const auto right = results(host, at::kCPU), given = results(launcher, device);
      const double bound = type == at::kFloat ? 1e-5 : 2e-2;
      if (!at::allclose(given.first, right.first, 1e-5, 1e-5) ||
          !at::allclose(given.second, right.second, bound, 1e-7)) {
        return c10::str("head in ", type, " gives other numbers than the host's");
      }
    }
  }
  return {};
}

}  // namespace sealift::trainer::kernels
