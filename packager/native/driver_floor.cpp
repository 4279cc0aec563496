// SPDX-License-Identifier: Apache-2.0
// NVIDIA's table; see driver_floor.hpp. Source: CUDA Toolkit release notes, "CUDA Toolkit and Minimum Required Driver
// Version for CUDA Minor Version Compatibility".
#include "packager/native/driver_floor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "sealift/bundle/wheel/wheel.hpp"

namespace sealift::packager {

std::optional<unsigned> cuda_of_wheels(const std::vector<std::string>& file_names) {
  std::optional<unsigned> cuda;
  for (const std::string& file_name : file_names) {
    const std::optional<bundle::WheelName> name = bundle::parse_wheel_name(file_name);
    if (!name || !bundle::normalized_project_name(name->name).starts_with("nvidia-cuda-runtime")) continue;
    unsigned major = 0;
    const std::string& version = name->version;
    if (std::from_chars(version.data(), version.data() + version.size(), major).ec != std::errc()) continue;
    cuda = std::max(cuda.value_or(0), major);
  }
  return cuda;
}

std::optional<std::string> driver_floor(unsigned cuda) {
  if (cuda == 13) return "580";
  if (cuda == 12) return "525.60.13";
  if (cuda == 11) return "450.80.02";
  return std::nullopt;
}

// CUDA Toolkit release notes, "Deprecated or Dropped Features": 13.0 dropped Maxwell, Pascal and Volta, 12.0 Kepler,
// 11.0 what is older than 3.5.
std::optional<unsigned> gpu_floor(unsigned cuda) {
  if (cuda == 13) return 75;
  if (cuda == 12) return 50;
  if (cuda == 11) return 35;
  return std::nullopt;
}

std::string driver_text(std::optional<unsigned> cuda) {
  if (!cuda) return {};
  const std::optional<std::string> floor = driver_floor(*cuda);
  return floor ? fmt::format("CUDA {} needs NVIDIA driver {} or newer", *cuda, *floor)
               : fmt::format("CUDA {} needs an NVIDIA driver of its time; look it up in its release notes", *cuda);
}

}  // namespace sealift::packager
