// SPDX-License-Identifier: Apache-2.0
// The item records that unpacking a bundle would give, without writing its files: made from verified bytes by the code
// that installs. The doctor compares the store with them.
#pragma once

#include <map>

#include "installer/store/unpack.hpp"
#include "sealift/bundle/host/progress.hpp"

namespace sealift::installer {

// By the item's name in the store.
using ItemRecords = std::map<std::string, ItemRecord>;

// Of all placed entries; reads each of their bytes once.
ItemRecords signed_records(const bundle::VerifiedBundle& bundle, unsigned threads, bundle::Progress& progress);
// Of these entries, by the names of their items.
ItemRecords signed_records(const bundle::VerifiedBundle& bundle,
                           const std::map<std::string, const bundle::Entry*>& entries, unsigned threads,
                           bundle::Progress& progress);

// The placed entries by their items' names.
std::map<std::string, const bundle::Entry*> placed_items(const bundle::VerifiedBundle& bundle);

}  // namespace sealift::installer
