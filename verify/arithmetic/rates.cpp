// SPDX-License-Identifier: Apache-2.0
// Rates of one device.
// See rates.hpp.
// A repetition is ended by reading one element, which waits for the device whatever it is.
#include "verify/arithmetic/rates.hpp"

#include "verify/arithmetic/steps.hpp"
#include "verify/conduct/processors.hpp"

namespace sealift::verify {
namespace {

constexpr int kRepetitions = 7;

/// Seconds of the fastest call; the first is not counted.
template <class Call>
double fastest(const at::Tensor& result, const Call& call) {
  double best = 0;
  for (int i = 0; i <= kRepetitions; ++i) {
    const auto began = std::chrono::steady_clock::now();
    call();
    result.flatten()[0].item<float>();
    const auto took = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    if (i > 0 && (best == 0 || took < best)) best = took;
  }
  return best;
}

double matmul_rate(at::Device device, at::ScalarType dtype) {
  const std::int64_t n = device.is_cuda() ? 8192 : 384;
  const auto left = at::ones({n, n}, at::TensorOptions().device(device).dtype(dtype)), right = left.clone();
  auto result = at::empty_like(left);
  const double seconds = fastest(result, [&] { at::mm_out(result, left, right); });
  return 2.0 * static_cast<double>(n * n * n) / seconds / 1e12;
}

double copy_rate(const at::Tensor& to, const at::Tensor& from, double passes) {
  return passes * static_cast<double>(from.nbytes()) / fastest(to, [&] { to.copy_(from); }) / 1e9;
}

}  // namespace

nlohmann::json measure_rates(at::Device device) {
  at::NoGradGuard no_grad;
  const Processors processors;
  auto rates = nlohmann::json::array();
  const auto add = [&](const char* name, const char* unit, double value) {
    rates.push_back({{"name", name}, {"unit", unit}, {"value", value}});
  };
  add("matmul fp32", "TFLOP/s", matmul_rate(device, at::kFloat));
  add("matmul bf16", "TFLOP/s", matmul_rate(device, at::kBFloat16));
  const std::int64_t numel = device.is_cuda() ? std::int64_t{1} << 28 : std::int64_t{1} << 23;
  const auto from = at::ones({numel}, at::TensorOptions().device(device)), to = at::zeros_like(from);
  add("memory", "GB/s", copy_rate(to, from, 2));
  if (device.is_cuda()) {
    const auto host = at::ones({numel / 4}, at::TensorOptions().pinned_memory(true));
    add("host to device", "GB/s", copy_rate(to.narrow(0, 0, numel / 4), host, 1));
  }
  return {{"kind", kind_of_device(device)},
          {"cpu", device.is_cpu()},
          {"rates", rates},
          // A device's rates do not depend on the host's processors.
          {"processors", device.is_cpu() ? processors.taken(at::get_num_threads()) : nlohmann::json()}};
}

}  // namespace sealift::verify
