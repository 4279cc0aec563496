// SPDX-License-Identifier: Apache-2.0
// Why a GPU that a driver shows cannot be used, or is used by slower kernels: what was found, as lines with the next
// step. Facts come in, so that all is tested without a GPU; device.cpp finds them.
#pragma once

#include "trainer/ranks/cuda_driver.hpp"

#include <c10/core/Device.h>

#include <cstdint>
#include <string>

namespace sealift::trainer {

/// Why this driver does not run LibTorch's CUDA; empty: it does. `runtime`: CUDA's number of LibTorch, 13000 for 13.0.
std::string driver_fault(const CudaDriver& driver, std::int64_t runtime);

/// Why the CUDA half was not loaded, by what the loader said.
std::string load_fault(const std::string& error);

/// What the first computation on `device` says; empty: it gives the CPU's numbers.
std::string first_kernel_fault(c10::Device device);

/// What `first_kernel_fault` means for a card; empty for none.
std::string card_fault(const CudaDevice& card, const std::string& first_kernel);

/// What a card is too old for, though it computes; empty: nothing.
std::string card_note(const CudaDevice& card);

struct Cudnn {
  std::int64_t built = 0, loaded = 0;  ///< cuDNN's numbers, 91900 for 9.19.0: of the headers, of the library; 0: none
  std::string library;                 ///< its path
};

/// What LibTorch's CUDA half, which is loaded, was built with and found.
Cudnn find_cudnn();

/// 91900 -> "9.19.0"
std::string cudnn_version(std::int64_t number);

/// What another cuDNN than LibTorch's own means; empty: nothing.
std::string cudnn_note(const Cudnn& cudnn);

}  // namespace sealift::trainer
