// SPDX-License-Identifier: Apache-2.0
// The machine that a bundle is made for, as a value: what the packager resolves for and the installer compares with.
// `sealift-install probe` finds all of it out, a lock keeps all of it; a manifest carries arch and glibc only.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sealift/bundle/core/version.hpp"

namespace sealift::bundle {

// An empty text, an empty list and glibc 0.0 stand for what is not known.
struct Target {
  std::string arch = "x86_64";                 // as `uname -m` prints it
  GlibcVersion glibc = {};                     // the oldest one that the bundle is promised to run on
  std::string glibcxx = {};                    // the newest GLIBCXX_ of its libstdc++: "3.4.24"
  std::string cxxabi = {};                     // the newest CXXABI_ of its libstdc++: "1.3.11"
  std::string distribution = {};               // ID and VERSION_ID of os-release: "kylin V10"
  std::string kernel = {};                     // as `uname -r` prints it
  std::string cpu = {};                        // "x86-64-v1" to "x86-64-v4"
  std::vector<std::string> flags = {};         // those of the CPU that numerical code asks for
  std::vector<std::string> gpus = {};          // NVIDIA's: "8 x NVIDIA H200", "1 x 10de:2335"
  std::string driver = {};                     // NVIDIA's kernel driver: "580.65.06"
  std::vector<std::string> python = {};        // the system's own: "3.6"
  std::vector<std::string> crypto = {};        // which libcrypto there is, and signs of FIPS
  std::optional<std::uint64_t> free_gib = {};  // in the folder to install into

  auto operator<=>(const Target&) const = default;
};

}  // namespace sealift::bundle
