// SPDX-License-Identifier: Apache-2.0
// Judges whether everything native in a bundle would load on the target, and lists everything that would not, each with
// its remedy. Pure: NativeFiles -> NativeReport; native_report turns the report into text.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "packager/native/native_finding.hpp"
#include "packager/native/symbol_floor.hpp"
#include "sealift/bundle/manifest/manifest.hpp"

namespace sealift::packager {

struct NativeReport {
  std::size_t files = 0;
  std::size_t needed = 0;                       // NEEDED entries of all files
  NativeFindings findings;                      // the most severe first
  std::map<std::string, SymbolFloors> floors;   // of each component
  std::optional<unsigned> cuda;                 // the major version of CUDA that is carried
  std::map<std::string, std::string> gpu_code;  // component -> what its CUDA code is for, as in a manifest

  std::size_t count(Severity severity) const;
};

// `interpreter` is the path of the program that imports libraries: "libexec/python3.11". With a carried `runtime`,
// its glibc counts, and the target's only for programs that are not started by the launcher. `of_target` are hashes of
// the symbols that the target's glibc defines.
NativeReport check_native(const NativeFiles& files, const bundle::Target& target, const std::string& interpreter,
                          const std::optional<bundle::CarriedRuntime>& runtime = {},
                          const std::vector<std::uint64_t>& of_target = {});

}  // namespace sealift::packager
