// SPDX-License-Identifier: Apache-2.0
// All entries that the store lacks, unpacked by several threads: largest first, so that the last one to end is small.
// Each thread reads its own ranges of the verified payload; memory is a few chunks a thread.
#pragma once

#include "installer/host/progress.hpp"
#include "installer/store/store.hpp"
#include "sealift/bundle/verified_bundle.hpp"

namespace sealift::installer {

// One entry into the new folder `folder`, with its record; throws Format when it takes more room than was signed.
void unpack_entry(const bundle::VerifiedBundle& bundle, const bundle::Entry& entry, const std::filesystem::path& folder,
                  Disk& disk, Progress& progress);

// Unpacks below `staging` (which is there) what does not wait finished already. Throws the first failure, once every
// thread has stopped; what was finished before it stays in staging, being verified.
void unpack_all(const bundle::VerifiedBundle& bundle, std::vector<const bundle::Entry*> entries, const Prefix& prefix,
                const std::filesystem::path& staging, Disk& disk, unsigned threads, Progress& progress);

}  // namespace sealift::installer
