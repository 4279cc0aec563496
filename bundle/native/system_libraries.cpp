// SPDX-License-Identifier: Apache-2.0
// The lists of glibc's and the driver's libraries; see system_libraries.hpp. The driver's are told by how their names
// begin, because every release adds some (libnvidia-tileiras came with 590) and no package brings any of them.
#include "sealift/bundle/native/system_libraries.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <iterator>

namespace sealift::bundle {

namespace {

constexpr std::string_view kGlibc[] = {"ld",
                                       "libc",
                                       "libm",
                                       "libmvec",
                                       "libpthread",
                                       "libdl",
                                       "librt",
                                       "libutil",
                                       "libresolv",
                                       "libanl",
                                       "ld-lsb",
                                       "libnsl",
                                       "libBrokenLocale",
                                       "libthread_db",
                                       "libc_malloc_debug"};
constexpr std::string_view kNotEverywhere = "libnsl";
constexpr std::string_view kGlibcBeginnings[] = {"ld-linux", "libnss_"};
// Source: the files that Debian's and python-build-standalone's lib-dynload need, with their own needs. No ".so" stands
// here: a whole name in our programs would look like a library that they open.
constexpr std::string_view kInterpreter[] = {"libpython", "libssl.",      "libcrypto.", "libz.",      "libbz2.",
                                             "liblzma.",  "libzstd.",     "libffi.",    "libexpat.",  "libsqlite3.",
                                             "libuuid.",  "libreadline.", "libedit.",   "libncurses", "libtinfo",
                                             "libpanel",  "libgdbm",      "libdb-",     "libcrypt.",  "libmpdec.",
                                             "libtirpc.", "libnsl.",      "libb2.",     "libstdc++.", "libgcc_s."};
constexpr std::string_view kDriver[] = {"libcuda.so", "libcudadebugger.so", "libnvcuvid.so", "libnvidia-",
                                        "libnvoptix.so"};

template <std::size_t N>
bool starts_with_any(std::string_view name, const std::string_view (&beginnings)[N]) {
  return std::any_of(std::begin(beginnings), std::end(beginnings),
                     [&](std::string_view beginning) { return name.starts_with(beginning); });
}

// "libc.so.6" or "libc-2.31.so", for the library "libc".
bool is_called(std::string_view name, std::string_view library) {
  if (!name.starts_with(library)) return false;
  std::string_view rest = name;
  rest.remove_prefix(library.size());  // not substr, whose exception would grow sealift-start
  return rest.starts_with(".so.") || rest.starts_with("-2.");
}

bool is_of_some_glibc(std::string_view name) {
  return starts_with_any(name, kGlibcBeginnings) ||
         std::any_of(std::begin(kGlibc), std::end(kGlibc),
                     [&](std::string_view library) { return is_called(name, library); });
}

struct OptionalPlugin {
  const char* name;  // a pattern
  const char* why;
};

constexpr OptionalPlugin kOptionalPlugins[] = {
    {"nvshmem_transport_*.so*", "NVSHMEM opens the plug-in of this host's network"},
    {"nvshmem_bootstrap_*.so*", "NVSHMEM opens the plug-in of the job's launcher"},
    {"libcufile_rdma.so*", "cuFile opens it when RDMA is there"},
    {"libnccl-*.so*", "NCCL opens it when the site asks for it"},
    {"libtorchcodec_*.so", "torchcodec has one for each FFmpeg, and takes that of the FFmpeg that the target has"},
    {"tbbpool.*.so", "numba takes the first threading layer that loads: TBB, OpenMP, its own"},
    {"omppool.*.so", "likewise"},
    {"libbitsandbytes_*.so", "bitsandbytes has one for each CUDA, ROCm and XPU, and takes that of torch"},
    {"attach_linux_*.so", "debugpy puts it into another process when it is told to, through that one's debugger"},
    {"_tensor_bridge.*.so", "cuda.core imports it for tensors of torch, once torch's symbols are there"},
};

// Without users on this host: libraries for other accelerators, and for a debugger.
constexpr const char* kOfOtherHosts[] = {"libbitsandbytes_xpu*.so", "libbitsandbytes_rocm*.so", "attach_linux_*.so"};

}  // namespace

bool is_glibc_library(std::string_view name) {
  return is_of_some_glibc(name) && !is_called(name, kNotEverywhere);
}

bool is_driver_library(std::string_view name) {
  return starts_with_any(name, kDriver);
}

bool is_interpreter_library(std::string_view name) {
  return starts_with_any(name, kInterpreter);
}

bool belongs_to_target(std::string_view name) {
  return is_glibc_library(name) || is_driver_library(name);
}

bool may_come_from_target(std::string_view name) {
  return is_of_some_glibc(name) || is_driver_library(name);
}

bool is_optional_plugin(const std::string& name) {
  return std::any_of(std::begin(kOptionalPlugins), std::end(kOptionalPlugins),
                     [&](const OptionalPlugin& plugin) { return ::fnmatch(plugin.name, name.c_str(), 0) == 0; });
}

bool is_plugin_of_other_hosts(const std::string& name) {
  return std::any_of(std::begin(kOfOtherHosts), std::end(kOfOtherHosts),
                     [&](const char* pattern) { return ::fnmatch(pattern, name.c_str(), 0) == 0; });
}

}  // namespace sealift::bundle
