// SPDX-License-Identifier: Apache-2.0
// Is there room for what `create` is about to fetch and write? Asked before the first byte of either.
#pragma once

#include <filesystem>
#include <vector>

#include "packager/files/content.hpp"

namespace sealift::packager {

// `out` need not be there yet. Throws Space with both sums, in bytes; sizes that nobody has said count for nothing.
void require_space(const std::vector<Content>& contents, const Cache& cache, const std::filesystem::path& out);

}  // namespace sealift::packager
