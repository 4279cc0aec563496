// SPDX-License-Identifier: Apache-2.0
// Symbol versions -> floors; see symbol_floor.hpp. Families and their numbers: the version maps of glibc, libstdc++,
// libgcc.
#include "packager/native/symbol_floor.hpp"

#include <string_view>

#include "sealift/bundle/native/system_libraries.hpp"

namespace sealift::packager {

namespace {

void raise(SymbolFloors& floors, const std::string& family, const SymbolFloor& floor) {
  SymbolFloor& there = floors.try_emplace(family, floor).first->second;
  if (there.version < floor.version) there = floor;
}

}  // namespace

std::map<std::string, SymbolFloors> symbol_floors(const NativeFiles& files, const std::string& arch) {
  std::map<std::string, SymbolFloors> floors;
  for (const NativeFile& file : files.files) {
    if (file.elf.arch != arch || bundle::is_plugin_of_other_hosts(file.file_name())) continue;
    if (const auto glibc = file.elf.glibc_floor())
      raise(floors[file.owner], "GLIBC", {.version = *glibc, .path = file.path});
    for (const auto& [library, versions] : file.elf.wanted_versions)
      for (const std::string& version : versions)
        for (const std::string family : {"GLIBCXX", "CXXABI", "GCC"}) {
          if (!version.starts_with(family + "_")) continue;
          // Versions without numbers (GLIBC_PRIVATE, CXXABI_FLOAT128) say nothing about age.
          if (const auto parsed = bundle::Version::parse(std::string_view(version).substr(family.size() + 1)))
            raise(floors[file.owner], family, {.version = *parsed, .path = file.path});
        }
  }
  return floors;
}

SymbolFloors highest(const std::map<std::string, SymbolFloors>& floors) {
  SymbolFloors all;
  for (const auto& [owner, own] : floors)
    for (const auto& [family, floor] : own) raise(all, family, floor);
  return all;
}

}  // namespace sealift::packager
