// SPDX-License-Identifier: Apache-2.0
// How much memory checked chunks may take where nobody says: a wheel that is larger than the cache is hashed anew at
// each download, and torch's alone has half a gigabyte.
#pragma once

#include <cstdint>
#include <string>

namespace sealift::offline_repo {

// MiB: an eighth of `bytes`, at least 512 and at most 8,192, but never more than a half of it.
unsigned cache_for(std::uint64_t bytes);

// What this process may take at most: the machine's memory, or the limit of a control group (version 2) that it is in,
// whichever is less. `root`: "/", for tests another folder.
std::uint64_t memory_here(const std::string& root = "/");

}  // namespace sealift::offline_repo
