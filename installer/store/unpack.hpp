// SPDX-License-Identifier: Apache-2.0
// Unpacks all entries that the store lacks, with several threads. Each thread reads its own ranges of the verified
// payload; memory is a few chunks a thread.
#pragma once

#include "installer/store/stamps.hpp"
#include "sealift/bundle/host/progress.hpp"
#include "sealift/bundle/verified_bundle.hpp"

namespace sealift::installer {

struct Unpacked {
  bundle::Digest record;      // of the bytes of its record.json
  std::vector<Stamp> stamps;  // of the record's files
};

// Unpacks one entry, with its record, into the new folder `folder`. Throws Format when it takes more space than was
// signed.
Unpacked unpack_entry(const bundle::VerifiedBundle& bundle, const bundle::Entry& entry,
                      const std::filesystem::path& folder, Disk& disk, bundle::Progress& progress);

// Unpacks, below the existing folder `staging`, the entries that are not finished yet. Throws the first failure once
// every thread has stopped; items finished before it stay in staging, since they are verified. `stamps` gets
// those of what this run unpacked; what an earlier run left has none, and so is hashed before it is used.
void unpack_all(const bundle::VerifiedBundle& bundle, std::vector<const bundle::Entry*> entries, const Prefix& prefix,
                const std::filesystem::path& staging, Disk& disk, unsigned threads, bundle::Progress& progress,
                Stamps& stamps);

}  // namespace sealift::installer
