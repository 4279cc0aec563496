// SPDX-License-Identifier: Apache-2.0
// One Tree entry (a tar archive) into one store item.
// Archives are the classic way out of a folder, so every link is followed on paper before the item is accepted.
#pragma once

#include "installer/store/item_writer.hpp"
#include "sealift/bundle/verified_bundle.hpp"

namespace sealift::installer {

// Throws Format when the archive is damaged, writes through a link, or has a link that leads out of the tree.
void unpack_tree(const bundle::VerifiedBundle& bundle, const bundle::Entry& entry, ItemWriter& writer);

}  // namespace sealift::installer
