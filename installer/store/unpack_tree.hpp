// SPDX-License-Identifier: Apache-2.0
// Unpacks one Tree entry, a tar archive, into one store item. Archives are the classic way out of a folder, so every
// link target is resolved in memory before the item is accepted.
#pragma once

#include "installer/store/item_writer.hpp"
#include "sealift/bundle/verified_bundle.hpp"

namespace sealift::installer {

// Throws Format when the archive is damaged, writes through a link, or has a link that leads out of the tree.
void unpack_tree(const bundle::VerifiedBundle& bundle, const bundle::Entry& entry, ItemWriter& writer);

}  // namespace sealift::installer
