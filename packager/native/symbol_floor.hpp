// SPDX-License-Identifier: Apache-2.0
// The oldest glibc, libstdc++ and libgcc that each component of a bundle can run with, according to its symbol
// versions. Wheel tags state the same but are known to be wrong.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "packager/native/native_file.hpp"
#include "sealift/bundle/core/version.hpp"

namespace sealift::packager {

struct SymbolFloor {
  bundle::Version version;  // GLIBCXX_3.4.29 is 3.4.29
  std::string path;         // a file that needs it

  std::string text() const { return version.text(); }
  auto operator<=>(const SymbolFloor&) const = default;
};

// "GLIBC", "GLIBCXX", "CXXABI", "GCC" -> the newest that is needed.
using SymbolFloors = std::map<std::string, SymbolFloor>;

// Owner -> its floors; owners without any are left out. Files for other architectures and plugins of other hosts are
// ignored.
std::map<std::string, SymbolFloors> symbol_floors(const NativeFiles& files, const std::string& arch);

// The newest of all.
SymbolFloors highest(const std::map<std::string, SymbolFloors>& floors);

}  // namespace sealift::packager
