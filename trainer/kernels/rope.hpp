// SPDX-License-Identifier: Apache-2.0
// Rotary position embedding of queries and keys by one kernel; models/rope.cpp asks, and has the plain way.
// Above `launcher`; the body is rope_body.hpp.
#pragma once

#include "trainer/kernels/launcher.hpp"

#include <ATen/core/Tensor.h>

namespace sealift::trainer::kernels {

/// Whether the kernel takes these: fp32, bf16 or fp16 alike, [batch, time, heads, head_dim] each with values of a head
/// side by side, tables of fp32 [batch or 1, time, 1, head_dim / 2] without gaps.
bool takes_rope(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& cos, const at::Tensor& sin);

/// Writes both turned into `to_queries` and `to_keys`, tensors like them. `direction`: 1, or -1 back.
void rope(Launcher& launcher, const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& cos,
          const at::Tensor& sin, int direction, const at::Tensor& to_queries, const at::Tensor& to_keys);

std::vector<Kernel> rope_kernels();

/// Whether a launcher's device gives what the same bodies give on the host: a line that says where not, or nothing.
std::string rope_fault(Launcher& launcher, c10::Device device);

}  // namespace sealift::trainer::kernels
