// SPDX-License-Identifier: Apache-2.0
// Log-probabilities of labels and the logits' slopes by one kernel; models/label_log_probabilities.cpp asks, and has
// the plain way. Above `launcher`; the body is head_body.hpp.
#pragma once

#include "trainer/kernels/launcher.hpp"

#include <ATen/core/Tensor.h>

namespace sealift::trainer::kernels {

/// `logits` [tokens, columns], without gaps, become softmax - [is label] if `slopes`; `values` and `normalizers`, fp32
/// [tokens], get the labels' log-probabilities, NaN for a label outside the columns, and log sum exp. False, and
/// nothing done, where there is no kernel for them.
bool head(const at::Tensor& logits, const at::Tensor& labels, const at::Tensor& values, const at::Tensor& normalizers,
          bool slopes);

std::vector<Kernel> head_kernels();

/// As rope_fault.
std::string head_fault(Launcher& launcher, c10::Device device);

}  // namespace sealift::trainer::kernels
