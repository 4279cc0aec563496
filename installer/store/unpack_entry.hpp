// SPDX-License-Identifier: Apache-2.0
// One entry becomes one item, by one thread: for small entries, for the doctor, and for records without files.
#pragma once

#include "installer/store/item_writer.hpp"
#include "installer/store/store.hpp"
#include "sealift/bundle/host/progress.hpp"
#include "sealift/bundle/verified_bundle.hpp"

namespace sealift::installer {

struct Unpacked {
  bundle::Digest record;      // of the bytes of its record.json
  std::vector<Stamp> stamps;  // of the record's files
};

// The writer of the entry's item in the new folder `folder`, within the signed sizes.
ItemWriter item_writer(const bundle::Entry& entry, const std::filesystem::path& folder, Disk& disk,
                       bundle::Progress& progress);

// Unpacks one entry, with its record, into the new folder `folder`. Throws Format when it takes more space than was
// signed. What a patch builds on is taken from `store`; where that is nullptr, only its record is right.
Unpacked unpack_entry(const bundle::VerifiedBundle& bundle, const bundle::Entry& entry,
                      const std::filesystem::path& folder, Disk& disk, bundle::Progress& progress,
                      const Store* store = nullptr);

}  // namespace sealift::installer
