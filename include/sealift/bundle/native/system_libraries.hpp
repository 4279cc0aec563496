// SPDX-License-Identifier: Apache-2.0
// Which shared libraries belong to the target and are never carried: glibc's own, which are one with its loader, and
// the GPU driver's, which are one with its kernel module. The packager leaves them out, the installer expects them
// outside; both ask here, so that they cannot disagree. Names are file names or SONAMEs, without a folder.
#pragma once

#include <string>
#include <string_view>

namespace sealift::bundle {

// Part of every glibc: "libm.so.6", or "libm-2.31.so", as older distributions call the file behind it.
// Source: the file list of Debian's libc6.
bool is_glibc_library(std::string_view name);

// Part of NVIDIA's driver: "libcuda.so.1", "libnvidia-ml.so.1". Source: the file list of NVIDIA's driver installer.
bool is_driver_library(std::string_view name);

// What a CPython and its standard library load, such as "libpython3.11.so.1.0", "libssl.so.3" or "libz.so.1", and what
// every C++ library does. No wheel may place one where each program of an environment would find it.
bool is_interpreter_library(std::string_view name);

// glibc's dynamic linker for an architecture as `uname -m` prints it; empty for one that no bundle is made for. Source:
// glibc, sysdeps/*/shlib-versions.
constexpr std::string_view loader_name(std::string_view arch) {
  if (arch == "x86_64") return "ld-linux-x86-64.so.2";
  return arch == "aarch64" ? "ld-linux-aarch64.so.1" : "";
}

// What a bundle may rely on without carrying it: either of the two.
bool belongs_to_target(std::string_view name);

// What a process may map from the target: also libnsl, which older glibcs bring and load for their name services. Newer
// distributions have it in a package of its own or not at all, so a bundle cannot rely on it.
bool may_come_from_target(std::string_view name);

// Whether a library or extension module of this file name is opened only where its own needs are met, so that a bundle
// may lack them: one of several for several hosts, or one that its package does without. Packing lets it pass, and the
// self-test says that it was not tried.
bool is_optional_plugin(const std::string& name);

// The optional plugins that only another kind of host opens, so that they may want a newer system than the target's.
bool is_plugin_of_other_hosts(const std::string& name);

}  // namespace sealift::bundle
