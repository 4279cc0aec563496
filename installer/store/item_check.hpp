// SPDX-License-Identifier: Apache-2.0
// Whether a store item is what its record says: every file, folder and link exists, with its size and kind.
// Used where nothing could replace a bad item: for what a delta leaves to the store and what an inventory promises.
#pragma once

#include <filesystem>
#include <string>

namespace sealift::installer {

// Why the item in the folder `item` cannot be used; empty when it can. Reads the record and calls lstat for each path;
// no file is read.
std::string item_fault(const std::filesystem::path& item);

}  // namespace sealift::installer
