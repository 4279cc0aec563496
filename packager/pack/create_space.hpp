// SPDX-License-Identifier: Apache-2.0
// Checks that there is room for what `create` will fetch and write, before the first byte of either.
#pragma once

#include <filesystem>
#include <vector>

#include "packager/content/content.hpp"

namespace sealift::packager {

// `out` need not be there yet. Throws Space with both sums, in bytes; sizes that nobody has said count for nothing.
void require_space(const std::vector<Content>& contents, const Cache& cache, const std::filesystem::path& out);

}  // namespace sealift::packager
