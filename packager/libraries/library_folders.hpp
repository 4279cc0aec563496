// SPDX-License-Identifier: Apache-2.0
// Where a program of this machine finds its libraries outside of the system's folders: what a sandbox must show of the
// disk for the program to start in it. Beside native_closure, which says what is carried and knows no wheels.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace sealift::packager {

// The folders that `program` itself and `also` (LD_LIBRARY_PATH) name, as far as they are there, and the folders of its
// libraries and of theirs. Those below /usr and /lib are left out. Throws Missing when `program` is not there, Format
// when a file is broken.
std::set<std::filesystem::path> library_folders(const std::filesystem::path& program, const std::string& arch,
                                                const std::vector<std::filesystem::path>& also);

}  // namespace sealift::packager
