// SPDX-License-Identifier: Apache-2.0
// The compute capability of NVIDIA's GPUs by what a probe says of them: the driver's name for one, or its number on the
// PCI bus. Neither /proc nor /sys tells it, and asking the driver's libraries would need a dynamic program.
// Source: NVIDIA, "CUDA GPU Compute Capability"; pci.ids and NVIDIA's gpu-admin-tools for numbers.
#pragma once

#include <optional>
#include <string_view>

namespace sealift::bundle {

// "8 x NVIDIA H200" is 90, "1 x 10de:1db6" is 70; a word such as sm_90 in the text decides before any table. Nothing
// for a GPU that the tables do not know.
std::optional<unsigned> gpu_capability(std::string_view gpu);

}  // namespace sealift::bundle
