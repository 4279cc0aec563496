// SPDX-License-Identifier: Apache-2.0
// How fast one device multiplies matrices and moves memory.
// The measuring half of `arithmetic.rates`.
// The best of some repetitions, since other work on the host can only make one slower.
#pragma once

#include <torch/torch.h>

#include <nlohmann/json.hpp>

namespace sealift::verify {

/// What `judge_rates` takes. "matmul fp32" and "matmul bf16" in TFLOP/s (2 n³ of n x n matrices; fp32 without TF32),
/// "memory" in GB/s (bytes read and written by a copy), on a GPU "host to device" in GB/s from pinned memory.
nlohmann::json measure_rates(at::Device device);

}  // namespace sealift::verify
