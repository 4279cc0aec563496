// SPDX-License-Identifier: Apache-2.0
#include "trainer/kernels/images.hpp"

#include <cstdio>

namespace sealift::trainer::kernels {

std::optional<Image> image_for(const std::vector<Image>& images, const std::string& capability) {
  int major = 0, minor = 0;
  if (std::sscanf(capability.c_str(), "%d.%d", &major, &minor) != 2) return {};
  const int card = major * 10 + minor;
  std::optional<Image> best;
  for (const auto& each : images) {
    const bool runs = each.is_ptx ? each.capability <= card : each.capability / 10 == major && each.capability <= card;
    if (!runs) continue;
    const bool nearer =
        !best || (best->is_ptx && !each.is_ptx) || (best->is_ptx == each.is_ptx && best->capability < each.capability);
    if (nearer) best = each;
  }
  return best;
}

}  // namespace sealift::trainer::kernels
