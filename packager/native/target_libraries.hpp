// SPDX-License-Identifier: Apache-2.0
// Which libraries belong to the target and are never carried: glibc's own, which are one with its loader, and the GPU
// driver's, which are one with its kernel module and not ours to distribute. Asked by everything that follows NEEDED.
#pragma once

#include <string_view>

namespace sealift::packager {

// Part of glibc; `library` is a file name such as "libm.so.6".
bool is_glibc_library(std::string_view library);

// Part of NVIDIA's driver, such as "libcuda.so.1".
bool is_driver_library(std::string_view library);

inline bool belongs_to_target(std::string_view library) {
  return is_glibc_library(library) || is_driver_library(library);
}

}  // namespace sealift::packager
