// SPDX-License-Identifier: Apache-2.0
// The two lists; see target_libraries.hpp. Sources: Debian's libc6, and the file list of NVIDIA's driver installer.
#include "packager/native/target_libraries.hpp"

#include <algorithm>
#include <iterator>

namespace sealift::packager {

namespace {

constexpr std::string_view kGlibc[] = {
    "libc.so.",    "libm.so.",      "libpthread.so.",   "libdl.so.",           "librt.so.",
    "libutil.so.", "libresolv.so.", "libanl.so.",       "libmvec.so.",         "ld-linux",
    "ld-lsb",      "libnss_",       "libthread_db.so.", "libBrokenLocale.so.", "libc_malloc_debug.so."};

constexpr std::string_view kDriver[] = {"libcuda.so",
                                        "libcudadebugger.so",
                                        "libnvcuvid.so",
                                        "libnvidia-allocator.so",
                                        "libnvidia-cfg.so",
                                        "libnvidia-encode.so",
                                        "libnvidia-fbc.so",
                                        "libnvidia-gpucomp.so",
                                        "libnvidia-ml.so",
                                        "libnvidia-nvvm.so",
                                        "libnvidia-opencl.so",
                                        "libnvidia-opticalflow.so",
                                        "libnvidia-ptxjitcompiler.so",
                                        "libnvoptix.so"};

template <std::size_t N>
bool starts_with_any(std::string_view library, const std::string_view (&prefixes)[N]) {
  return std::any_of(std::begin(prefixes), std::end(prefixes),
                     [&](std::string_view prefix) { return library.starts_with(prefix); });
}

}  // namespace

bool is_glibc_library(std::string_view library) {
  return starts_with_any(library, kGlibc);
}

bool is_driver_library(std::string_view library) {
  return starts_with_any(library, kDriver);
}

}  // namespace sealift::packager
