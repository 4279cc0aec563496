// SPDX-License-Identifier: Apache-2.0
// The kernels as compiled for cards when the project was built, and which of them a card takes.
// compile_kernels.cpp writes `images()` (build/…/kernel_images.cpp); cuda_launcher.cpp gives one to CUDA's runtime.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace sealift::trainer::kernels {

struct Image {
  int capability = 0;   ///< 90: compiled for 9.0
  bool is_ptx = false;  ///< text that the driver compiles for its card, of this capability or a later one
  const char* begin = nullptr;
  std::size_t bytes = 0;
};

/// In this program; none where it was built without NVRTC. A text is ended by a byte of 0 behind it.
const std::vector<Image>& images();

/// The one for a card of a capability ("9.0"): compiled for its major number and the nearest minor one that is not
/// above its own; else a text; else nothing.
std::optional<Image> image_for(const std::vector<Image>& images, const std::string& capability);

}  // namespace sealift::trainer::kernels
