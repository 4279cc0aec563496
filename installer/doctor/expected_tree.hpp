// SPDX-License-Identifier: Apache-2.0
// What a store item and a generation should look like on disk, made from their records alone, without a bundle.
// The doctor compares with these trees and repairs by them; a generation's is laid out by the code that built it.
#pragma once

#include <set>

#include "installer/generations/generation_record.hpp"
#include "installer/store/signed_records.hpp"

namespace sealift::installer {

// A folder and what must stand in it; `own` are names that are neither checked nor extra.
struct ExpectedTree {
  std::filesystem::path folder;
  Layout layout;
  std::set<std::string> own;
};

// Of the store item in `folder`.
ExpectedTree item_tree(const std::filesystem::path& folder, const ItemRecord& record);

// Of a generation, whose files are those of the store. Every item that it refers to must be in `records`. Throws
// Conflict or Format when the records contradict each other.
ExpectedTree generation_tree(const Prefix& prefix, const GenerationRecord& record, const ItemRecords& records);

}  // namespace sealift::installer
