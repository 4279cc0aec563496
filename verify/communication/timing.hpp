// SPDX-License-Identifier: Apache-2.0
// Seconds of a call, until the device has done it.
// Used by the measurements of bandwidth and of pairs.
// A collective on a GPU returns before it is done.
#pragma once

#include <ATen/ATen.h>

#include <chrono>

namespace sealift::verify {

inline double seconds_since(std::chrono::steady_clock::time_point began) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

/// Until the device has done what was asked for.
inline void settle(const at::Tensor& tensor) {
  if (tensor.is_cuda() && tensor.numel() > 0) tensor.flatten()[0].item();
}

}  // namespace sealift::verify
