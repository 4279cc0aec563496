// SPDX-License-Identifier: Apache-2.0
// What this machine is, as a value: preflight compares it with a bundle's target, and as a profile it is carried out
// for a job file. Read from files and the kernel only: no program of the host is run, and nothing identifies the
// machine.
#pragma once

#include <filesystem>
#include <optional>

#include "sealift/bundle/manifest/target.hpp"

namespace sealift::installer {

struct Machine {
  bundle::Target target;                            // glibc 0.0: no libc.so.6 of this architecture was found
  std::filesystem::path libc;                       // the file that says so
  std::optional<std::uint64_t> shared_memory = {};  // bytes that /dev/shm holds; nothing: none is mounted
  std::string locale = {};                          // from this process's environment
  std::string compiler = {};                        // a C compiler's path
  std::string authorities = {};                     // the path of the host's certificate authorities
  bool time_zones = false;                          // whether the host has their table
  std::string fuse = {};                            // what mounting an image lacks, and what to do; "": nothing
};

// `root` is the root folder of the host's file system; the architecture is the running kernel's. What cannot be read is
// left out.
Machine probe(const std::filesystem::path& root = "/");

}  // namespace sealift::installer
