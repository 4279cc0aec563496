// SPDX-License-Identifier: Apache-2.0
// Whether an item of the store is what its record says: every file, folder and link there, each of its size and kind.
// Asked where there is nothing to fall back on: of what a delta leaves to the store, and of what an inventory promises.
#pragma once

#include <filesystem>
#include <string>

namespace sealift::installer {

// Why the item in the folder `item` cannot be used; empty when it can. Reads the record and looks at each path by
// lstat; no byte of a file is read.
std::string item_fault(const std::filesystem::path& item);

}  // namespace sealift::installer
