// SPDX-License-Identifier: Apache-2.0
// Which symbols of a bundle's files nothing defines: a trainer built for torch 2.11 beside torch 2.15. Lenient where
// ld.so is not: any file of the bundle may define a symbol for any other, as packages load libraries for each other in
// ways that no table shows. What is left is defined nowhere. Pure.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "packager/native/native_walk.hpp"

namespace sealift::packager {

// File -> the symbols that it needs and nothing defines, sorted. A file that needs a library which neither the bundle
// nor glibc brings, such as the driver's, is not judged: that library may define them. `of_target` are hashes of what
// the target's glibc defines, for files that name no version.
std::map<std::size_t, std::vector<std::string>> unbound_symbols(const NativeIndex& index,
                                                                const std::vector<std::uint64_t>& of_target);

// What this machine's glibc for `arch` defines, as hashes; glibc takes no symbol away, so an older target's differs
// only in symbols with versions, which are compared apart. Empty where there is none.
std::vector<std::uint64_t> glibc_symbols(const std::string& arch, const std::vector<std::filesystem::path>& folders);

}  // namespace sealift::packager
