// SPDX-License-Identifier: Apache-2.0
// Judges whether everything native in a bundle would load on the target, and lists everything that would not, each with
// its remedy. Pure: NativeFiles -> NativeReport; native_report turns the report into text.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "packager/native/native_file.hpp"
#include "packager/native/symbol_floor.hpp"
#include "sealift/bundle/manifest/manifest.hpp"

namespace sealift::packager {

enum class Severity {
  Note,     // worth knowing, not a fault
  Warning,  // may fail on some targets, or cannot be decided here
  Refusal,  // something in the bundle does not work on the target
};

struct NativeFinding {
  enum class Kind {
    MissingLibrary,     // NEEDED, and nothing brings it
    LoadedBefore,       // NEEDED, in the bundle, but found only once something else has loaded it
    TargetsOwn,         // a program needs a carried library that it cannot see; the target must have it
    WrongArchitecture,  //
    UndefinedSymbol,    // a symbol that nothing defines
    SymbolVersion,      // the library that is found lacks a version that is needed
    GlibcFloor,         // a component needs a newer glibc than the target has
    OpenedLibrary,      // opened by name, according to the table, and nothing brings it
    UnknownName,        // perhaps opened by name; neither in the table nor in the bundle
    DriverLibrary,      // part of the GPU driver
    ExecutableStack,
    TextRelocations,
    NoSoname,
    Circle,  // a dependency cycle
    Unreadable,
    Machine,  // the profile's machine has less than what is needed (profile_check.hpp)
  };

  Kind kind;
  Severity severity;
  std::string library;  // the SONAME that is needed, if it is about one
  std::string what;
  std::string next;
};

struct NativeReport {
  std::size_t files = 0;
  std::size_t needed = 0;                       // NEEDED entries of all files
  std::vector<NativeFinding> findings;          // the most severe first
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
