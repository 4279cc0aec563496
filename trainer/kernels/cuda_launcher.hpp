// SPDX-License-Identifier: Apache-2.0
// Kernels on NVIDIA's cards, by five functions of CUDA's runtime that LibTorch has loaded.
// Above `launcher` and `images`. Looked up by name, as ranks/cuda_driver.cpp does with the driver: building needs no
// toolkit, a host without a card loads nothing, and tests give a runtime that is made up.
#pragma once

#include "trainer/kernels/images.hpp"
#include "trainer/kernels/launcher.hpp"

#include <functional>

namespace sealift::trainer::kernels {

/// The handle of a device's current stream, cudaStream_t.
using StreamOf = std::function<void*(c10::Device)>;

/// A launcher, or why there is none.
struct CudaKernels {
  std::shared_ptr<Launcher> launcher;
  std::string why_not;
};

/// Loads the image for a card of `capability` ("9.0") through the runtime in the file `library`, and looks for every
/// kernel in it. Never throws.
CudaKernels load_cuda_kernels(const std::string& library, const std::vector<Image>& images,
                              const std::string& capability, StreamOf stream_of);

/// The current stream as c10 knows it.
void* current_stream(c10::Device device);

}  // namespace sealift::trainer::kernels
