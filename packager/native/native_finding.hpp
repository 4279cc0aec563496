// SPDX-License-Identifier: Apache-2.0
// One thing that somebody must know of what is native in a bundle: what would not load on the target, and the remedy.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "packager/native/native_file.hpp"

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
    SearchedFolder,     // a folder that ld.so searches has libraries of somebody who has nothing to do there
    SameName,           // two libraries of one name in folders that one file searches
    SearchPath,         // a part of an RPATH or RUNPATH that leads out of the environment
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

using NativeFindings = std::vector<NativeFinding>;

// "a, b and 3 more".
std::string several(const std::set<std::string>& names);

// "torch/lib/libc10.so of torch-2.11.0-...whl".
std::string described(const NativeFile& file);

}  // namespace sealift::packager
