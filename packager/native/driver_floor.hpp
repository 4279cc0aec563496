// SPDX-License-Identifier: Apache-2.0
// The oldest NVIDIA driver that the carried CUDA works with. The driver itself is part of the target.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace sealift::packager {

// The major version of CUDA that wheels with these file names bring: nvidia_cuda_runtime-13.0.96-..., or
// nvidia_cuda_runtime_cu12-12.8.90-...; the highest of several.
std::optional<unsigned> cuda_of_wheels(const std::vector<std::string>& file_names);

// "580", or nothing for an unknown version. Within one major version of CUDA, older drivers keep working.
std::optional<std::string> driver_floor(unsigned cuda);

// The oldest compute capability that this CUDA compiles for and its libraries have code for; nothing for an unknown
// one.
std::optional<unsigned> gpu_floor(unsigned cuda);

// "CUDA 13 needs driver 580 or newer"; empty when there is no CUDA.
std::string driver_text(std::optional<unsigned> cuda);

}  // namespace sealift::packager
