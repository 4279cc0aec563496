// SPDX-License-Identifier: Apache-2.0
#include "trainer/kernels/swiglu.hpp"

#include "trainer/kernels/operands.hpp"
#include "trainer/kernels/swiglu_body.hpp"

#include <ATen/ATen.h>

#include <limits>

namespace sealift::trainer::kernels {
namespace {

constexpr unsigned kSwiGluThreads = 256;
constexpr std::size_t kPackBytes = 16;

template <class Value, unsigned kAtOnce>
constexpr Kernel forward_of(const char* name) {
  return {name, kSwiGluThreads, run_on_host<SwiGluArgs, swiglu<Value, kAtOnce, HostBlock>>};
}

template <class Value, unsigned kAtOnce>
constexpr Kernel backward_of(const char* name) {
  return {name, kSwiGluThreads, run_on_host<SwiGluBackwardArgs, swiglu_backward<Value, kAtOnce, HostBlock>>};
}

constexpr OfTypes kForward{forward_of<float, 1>("sealift_swiglu_fp32"), forward_of<Bf16, 1>("sealift_swiglu_bf16"),
                           forward_of<Fp16, 1>("sealift_swiglu_fp16")};
constexpr OfTypes kForwardPacked{forward_of<float, 4>("sealift_swiglu_fp32_by_4"),
                                 forward_of<Bf16, 8>("sealift_swiglu_bf16_by_8"),
                                 forward_of<Fp16, 8>("sealift_swiglu_fp16_by_8")};
constexpr OfTypes kBackward{backward_of<float, 1>("sealift_swiglu_backward_fp32"),
                            backward_of<Bf16, 1>("sealift_swiglu_backward_bf16"),
                            backward_of<Fp16, 1>("sealift_swiglu_backward_fp16")};
constexpr OfTypes kBackwardPacked{backward_of<float, 4>("sealift_swiglu_backward_fp32_by_4"),
                                  backward_of<Bf16, 8>("sealift_swiglu_backward_bf16_by_8"),
                                  backward_of<Fp16, 8>("sealift_swiglu_backward_fp16_by_8")};

/// What a launch of these takes: packs of so many values, or nothing where a tensor is no such rows.
struct Rows {
  std::array<std::int64_t, 3> strides{};  ///< of the inputs, in values
  unsigned width = 0, packs = 0, blocks = 0;
  bool packed = false;
};

std::optional<Rows> rows_of(at::TensorList inputs) {
  const auto& first = inputs.front();
  if (!is_taken(first.scalar_type()) || first.numel() == 0 ||
      first.numel() > std::numeric_limits<std::int32_t>::max()) {
    return {};
  }
  Rows rows{.width = static_cast<unsigned>(first.size(-1))};
  const auto at_once = kPackBytes / first.element_size();
  rows.packed = rows.width % at_once == 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto& each = inputs[i];
    const auto stride = row_stride(each);
    if (!stride || each.scalar_type() != first.scalar_type() || each.sizes() != first.sizes() ||
        each.device() != first.device()) {
      return {};
    }
    rows.strides[i] = *stride;
    rows.packed = rows.packed && *stride % static_cast<std::int64_t>(at_once) == 0 && begins_at(each, kPackBytes);
  }
  rows.packs = static_cast<unsigned>(first.numel() / (rows.packed ? static_cast<std::int64_t>(at_once) : 1));
  rows.blocks = (rows.packs + kSwiGluThreads - 1) / kSwiGluThreads;
  return rows;
}

at::Tensor without_gaps(const at::Tensor& like) {
  return at::empty(like.sizes(), like.options());
}

at::Tensor forward_by(Launcher& launcher, const at::Tensor& gate, const at::Tensor& up) {
  auto rows = rows_of({gate, up});
  if (!rows) return {};
  auto result = without_gaps(gate);
  const SwiGluArgs args{.gate = gate.const_data_ptr(),
                        .up = up.const_data_ptr(),
                        .to = result.mutable_data_ptr(),
                        .gate_row = rows->strides[0],
                        .up_row = rows->strides[1],
                        .width = rows->width,
                        .packs = rows->packs};
  launcher.launch((rows->packed ? kForwardPacked : kForward).of(gate.scalar_type()), rows->blocks, &args, sizeof args,
                  gate.device());
  return result;
}

std::pair<at::Tensor, at::Tensor> backward_by(Launcher& launcher, const at::Tensor& gradient, const at::Tensor& gate,
                                              const at::Tensor& up) {
  auto rows = rows_of({gradient, gate, up});
  if (!rows) return {};
  auto of_gate = without_gaps(gate), of_up = without_gaps(up);
  const SwiGluBackwardArgs args{.gradient = gradient.const_data_ptr(),
                                .gate = gate.const_data_ptr(),
                                .up = up.const_data_ptr(),
                                .of_gate = of_gate.mutable_data_ptr(),
                                .of_up = of_up.mutable_data_ptr(),
                                .gradient_row = rows->strides[0],
                                .gate_row = rows->strides[1],
                                .up_row = rows->strides[2],
                                .width = rows->width,
                                .packs = rows->packs};
  launcher.launch((rows->packed ? kBackwardPacked : kBackward).of(gate.scalar_type()), rows->blocks, &args, sizeof args,
                  gate.device());
  return {of_gate, of_up};
}

}  // namespace

at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up) {
  const auto launcher = launcher_of(gate.device());
  auto result = launcher ? forward_by(*launcher, gate, up) : at::Tensor();
  if (result.defined()) note_kernel("swiglu");
  return result;
}

std::pair<at::Tensor, at::Tensor> swiglu_backward(const at::Tensor& gradient, const at::Tensor& gate,
                                                  const at::Tensor& up) {
  const auto launcher = launcher_of(gate.device());
  return launcher ? backward_by(*launcher, gradient, gate, up) : std::pair<at::Tensor, at::Tensor>();
}

std::vector<Kernel> swiglu_kernels() {
  std::vector<Kernel> all;
  for (const auto& each : {kForward, kForwardPacked, kBackward, kBackwardPacked}) {
    all.insert(all.end(), {each.fp32, each.bf16, each.fp16});
  }
  return all;
}

std::string swiglu_fault(Launcher& launcher, c10::Device device) {
  HostLauncher host;
  for (const auto type : {at::kFloat, at::kBFloat16, at::kHalf}) {
    for (const std::int64_t width : {7, 16}) {  // of which one value a thread, and 16 bytes
      const auto at_pace = [&](double pace) {
        return (at::arange(3 * width, at::kFloat) * pace).sin().mul(4).to(type).view({3, width});
      };
      const std::array here{at_pace(0.3), at_pace(0.7), at_pace(1.1)};
      const std::array there{here[0].to(device), here[1].to(device), here[2].to(device)};
      const auto right = backward_by(host, here[0], here[1], here[2]),
                 given = backward_by(launcher, there[0], there[1], there[2]);
      const std::array<std::pair<at::Tensor, at::Tensor>, 3> pairs{
          {{forward_by(launcher, there[0], there[1]), forward_by(host, here[0], here[1])},
           {given.first, right.first},
           {given.second, right.second}}};
      const double bound = type == at::kFloat ? 1e-5 : 2e-2;
      for (const auto& [got, expected] : pairs) {
        if (!at::allclose(got.cpu(), expected, bound, bound)) {
          return c10::str("swiglu in ", type, " gives other numbers than the host's");
        }
      }
    }
  }
  return {};
}

}  // namespace sealift::trainer::kernels
