// SPDX-License-Identifier: Apache-2.0
#include "trainer/models/attention_check.hpp"

#include "trainer/models/attention_choice.hpp"

namespace sealift::trainer {
namespace {

using Tensors = std::vector<at::Tensor>;

/// Of half precision against fp32, where values are about 1.
constexpr double kTolerance = 5e-2;

/// Queries, keys, values [1, heads, time, head_dim]: sizes that all kernels take.
Tensors small_inputs(at::ScalarType dtype) {
  Tensors inputs;
  for (const double pace : {0.1, 0.07, 0.13}) {
    inputs.push_back(at::arange(2 * 64 * 64, at::kFloat).mul(pace).sin().view({1, 2, 64, 64}).to(dtype));
  }
  return inputs;
}

Tensors leaves(const Tensors& inputs, const at::TensorOptions& options) {
  Tensors made;
  for (const auto& each : inputs) made.push_back(each.to(options).detach().requires_grad_());
  return made;
}

/// The output, and the gradients of its sum by `weights`, in fp32 on the CPU.
Tensors outcome(const Tensors& leaves, const at::Tensor& weights) {
  const at::AutoGradMode with_gradients(true);
  const auto output = at::scaled_dot_product_attention(leaves[0], leaves[1], leaves[2], {}, 0.0, /*is_causal=*/true);
  auto all = torch::autograd::grad({(output * weights.to(output.options())).sum()}, leaves);
  all.push_back(output.detach());
  for (auto& each : all) each = each.to(at::kCPU, at::kFloat);
  return all;
}

std::string fault_of(const Tensors& there, const Tensors& expected, const at::Tensor& weights) {
  try {
    const auto got = outcome(there, weights);
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (!at::allclose(got[i], expected[i], kTolerance, kTolerance)) return "its numbers are not the CPU's";
    }
    return {};
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    return text.substr(0, text.find('\n'));
  }
}

/// False where ATen has nothing to take in its place.
bool switch_off(AttentionWay way) {
  auto& context = at::globalContext();
  switch (way) {
    case AttentionWay::Cudnn:
      context.setSDPUseCuDNN(false);
      return true;
    case AttentionWay::Flash:
      context.setSDPUseFlash(false);
      return true;
    case AttentionWay::MemoryEfficient:
      context.setSDPUseMemEfficient(false);
      return true;
    case AttentionWay::OfDevice:
      context.setSDPUseOverrideable(false);
      return true;
    default:
      return false;
  }
}

}  // namespace

std::vector<std::string> check_attention(c10::Device device, at::ScalarType dtype) {
  if (device.is_cpu()) return {};
  const auto inputs = small_inputs(dtype);
  const auto weights = inputs[0].to(at::kFloat).cos();
  const auto expected = outcome(leaves(inputs, at::kFloat), weights);
  const auto there = leaves(inputs, at::TensorOptions(device));
  std::vector<std::string> lines;
  for (auto before = AttentionWay::NotTold;;) {
    const auto way = choose_attention(there[0], there[1], there[2], {}, /*is_causal=*/true, {});
    const auto fault = fault_of(there, expected, weights);
    if (fault.empty()) return lines;
    TORCH_CHECK(way != before && switch_off(way), "attention on ", device, " (", name_of(way),
                ") is not the CPU's: ", fault, "; use another device, or --device cpu");
    lines.push_back(c10::str("note: attention (", name_of(way), ") does not work here (", fault,
                             "): switched off, the next kernel runs in its place, slower and as right",
                             way == AttentionWay::Cudnn ? "; install LibTorch's cuDNN whole" : ""));
    before = way;
  }
}

void check_attention(const Place& place) {
  const auto dtype = place.policy.precision.param_dtype.value_or(at::kFloat);
  for (const auto& line : check_attention(place.device.device, dtype)) {
    std::cerr << (place.is_first() ? "" : c10::str("rank ", place.rank, ": ")) << line << '\n';
  }
}

}  // namespace sealift::trainer
