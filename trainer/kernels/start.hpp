// SPDX-License-Identifier: Apache-2.0
// Kernels of a run: loaded for its card, tried, and made known, or left out with a reason.
// The top of the room; fine_tune calls it once a process. A card that nobody has tried them on is tried here: what does
// not give the host's numbers is not used.
#pragma once

#include "trainer/kernels/cuda_launcher.hpp"

namespace sealift::trainer::kernels {

/// Where a card's kernels come from.
struct KernelSource {
  std::string runtime;     ///< the file of CUDA's runtime that LibTorch has loaded
  std::string capability;  ///< of the card: "9.0"
};

/// Makes kernels known for a device; why not, or nothing. Never throws for what a card or a driver lacks.
std::string start_kernels(c10::Device device, const KernelSource& source);

/// Tries every piece on small tensors and makes `launcher` known if all are right; else says what is wrong.
std::string adopt(std::shared_ptr<Launcher> launcher, c10::Device device);

}  // namespace sealift::trainer::kernels
