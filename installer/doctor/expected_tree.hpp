// SPDX-License-Identifier: Apache-2.0
// What a store item and a generation should be, made from their records alone: no bundle is needed to know it.
// The doctor compares with these, and repairs by them.
#pragma once

#include "installer/doctor/compare_tree.hpp"
#include "installer/generations/generation.hpp"
#include "installer/store/signed_records.hpp"

namespace sealift::installer {

// The names of the items in the store, sorted; what no installer named is left out.
std::vector<std::string> item_names(const Prefix& prefix);

// The item that lies in `root`.
Tree item_tree(const std::filesystem::path& root, const ItemRecord& record);

// The generation, of files of the store; every item that it refers to must be in `records`. Throws Conflict or Format
// when the records contradict each other.
Tree generation_tree(const Prefix& prefix, const GenerationRecord& record, const ItemRecords& records);

}  // namespace sealift::installer
