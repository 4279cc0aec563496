// SPDX-License-Identifier: Apache-2.0
// A generation's layout as the tree of an image, and the order in which its bytes lie there: the image has what `apply`
// makes of the same bundle, but for generation.json and bytecode, which tell of one machine.
#pragma once

#include <vector>

#include "bundle/image/image_writer.hpp"
#include "installer/layout/layout.hpp"

namespace sealift::installer {

bundle::ImageTree image_tree_of(const Layout& layout);

// The indexes of the tree's files: the interpreter first, then library by library, and of all of them in front what
// starting Python and importing reads, behind it headers, tests, stubs and documents. `tree` is image_tree_of(layout).
std::vector<std::size_t> image_order_of(const Layout& layout, const bundle::ImageTree& tree,
                                        const std::string& interpreter);

}  // namespace sealift::installer
