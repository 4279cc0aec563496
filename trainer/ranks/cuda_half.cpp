// SPDX-License-Identifier: Apache-2.0
// The CUDA half of sealift-train: a library that brings libtorch_cuda and NCCL with it.
// Loaded by `load_cuda` (device.cpp) on a host with a driver; nothing links it.
// NCCL goes into the program's own registry by a pointer: a registry variable of this library would be another one.
#include <sealift/train/comm/nccl_backend.hpp>

/// Gives the program the maker of NCCL backends.
extern "C" __attribute__((visibility("default"))) void sealift_cuda_half(sealift::train::EngineFactory* factory) {
  *factory = sealift::train::make_nccl;
}
