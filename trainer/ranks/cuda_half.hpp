// SPDX-License-Identifier: Apache-2.0
// What the CUDA half (cuda_half.cpp) gives the program that loads it, by one function. Both include this; they come
// from one build.
#pragma once

#include "trainer/ranks/by_length.hpp"

#include <sealift/train/comm/engines.hpp>

namespace sealift::trainer {

struct CudaHalf {
  train::EngineFactory nccl;
  AttendsByLength attends_by_length = nullptr;
};

/// The function, `extern "C"`, and its type. Another name for another `CudaHalf`.
inline constexpr const char* kGiveCudaHalf = "sealift_cuda_half_2";
using GiveCudaHalf = void(CudaHalf*);

}  // namespace sealift::trainer
