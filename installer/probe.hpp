// SPDX-License-Identifier: Apache-2.0
// What this machine is, as a value: compared with a bundle's target here, carried out as a job file's target profile.
// Everything is read from files and the kernel; no program of the host is run.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "sealift/bundle/target.hpp"

namespace sealift::installer {

struct Machine {
  std::string arch;                           // as `uname -m` prints it
  std::string kernel;                         // as `uname -r` prints it
  std::optional<bundle::GlibcVersion> glibc;  // nothing: no libc.so.6 of this architecture was found
  std::filesystem::path libc;                 // the file that says so
};

// `root` is where the host's file system starts; the architecture and kernel are those that run us.
Machine probe(const std::filesystem::path& root = "/");

}  // namespace sealift::installer
