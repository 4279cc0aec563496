// SPDX-License-Identifier: Apache-2.0
// The small files beside the generations, such as receipts: replaced whole, and durable before they have their names.
// A file that has its text already is left alone, so a second run changes nothing.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "installer/disk/disk.hpp"
#include "installer/prefix/prefix.hpp"

namespace sealift::installer {

using SmallFiles = std::vector<std::pair<std::filesystem::path, std::string>>;  // path, text

// `staging` is a folder of this run. Folders below the prefix are made as needed.
void replace_small_files(const SmallFiles& files, const Prefix& prefix, const std::filesystem::path& staging,
                         Disk& disk);

}  // namespace sealift::installer
