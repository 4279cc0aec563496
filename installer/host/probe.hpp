// SPDX-License-Identifier: Apache-2.0
// What this machine is, as a value: compared with a bundle's target here, carried out as a job file's target profile.
// Everything is read from files and the kernel; no program of the host is run, and nothing says whose machine it is.
#pragma once

#include <filesystem>

#include "sealift/bundle/manifest/target.hpp"

namespace sealift::installer {

struct Machine {
  bundle::Target target;                            // glibc 0.0: no libc.so.6 of this architecture was found
  std::filesystem::path libc;                       // the file that says so
  std::optional<std::uint64_t> shared_memory = {};  // bytes that /dev/shm takes; nothing: there is none
  std::string locale = {};                          // of texts, as this process's environment says
  std::string compiler = {};                        // a C compiler's path
};

// `root` is where the host's file system starts; the architecture is that of the kernel that runs us. What cannot be
// read is left out.
Machine probe(const std::filesystem::path& root = "/");

}  // namespace sealift::installer
