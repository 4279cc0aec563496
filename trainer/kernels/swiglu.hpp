// SPDX-License-Identifier: Apache-2.0
// SwiGLU and its gradients by a kernel each; models/decoder.cpp asks, and has the plain way.
// Above `launcher`; the bodies are swiglu_body.hpp.
#pragma once

#include "trainer/kernels/launcher.hpp"

#include <ATen/core/Tensor.h>

namespace sealift::trainer::kernels {

/// silu(gate) * up, both of one shape, without gaps; undefined where there is no kernel for them.
at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up);

/// The gradients of gate and up; undefined where there is no kernel for them.
std::pair<at::Tensor, at::Tensor> swiglu_backward(const at::Tensor& gradient, const at::Tensor& gate,
                                                  const at::Tensor& up);

std::vector<Kernel> swiglu_kernels();

/// As rope_fault.
std::string swiglu_fault(Launcher& launcher, c10::Device device);

}  // namespace sealift::trainer::kernels
