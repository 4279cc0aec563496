// SPDX-License-Identifier: Apache-2.0
// What unpacking a bundle's entries would give, without writing it: the records of its items, made from verified bytes
// by the same code that installs. Whatever a disk says about an item is judged by these.
#pragma once

#include "installer/store/unpack.hpp"

namespace sealift::installer {

// By the item's name in the store.
using ItemRecords = std::map<std::string, ItemRecord>;

// Of all placed entries; reads each of their bytes once, with `threads` threads.
ItemRecords signed_records(const bundle::VerifiedBundle& bundle, unsigned threads, Progress& progress);

// The placed entries by their items' names.
std::map<std::string, const bundle::Entry*> placed_items(const bundle::VerifiedBundle& bundle);

}  // namespace sealift::installer
