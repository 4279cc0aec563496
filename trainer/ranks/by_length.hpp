// SPDX-License-Identifier: Apache-2.0
// Whether a kind of device computes attention of sequences of different lengths in one call.
// A device's half registers its answer (device.cpp, tests); models/attention_choice.hpp asks.
#pragma once

#include <torch/torch.h>

namespace sealift::trainer {

/// Whether a device computes at::_flash_attention_forward by lengths, and its gradient, for such as these, [batch,
/// time, heads, head_dim].
using AttendsByLength = bool (*)(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values);

/// Makes a kind of device's answer known; null: it has no such kernel, as before.
void register_attention_by_length(c10::DeviceType device, AttendsByLength attends);

/// Whether these may run by lengths; else they need a mask.
bool attends_by_length(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values);

}  // namespace sealift::trainer
