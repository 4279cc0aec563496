// SPDX-License-Identifier: Apache-2.0
// Unpacks all entries that the store lacks, with several threads. Each thread reads its own ranges of the verified
// payload; a large wheel is shared among them. Memory does not grow with the number of threads.
#pragma once

#include "installer/store/stamps.hpp"
#include "installer/store/unpack_entry.hpp"
#include "sealift/bundle/host/progress.hpp"
#include "sealift/bundle/verified_bundle.hpp"

namespace sealift::installer {

// How many of `threads` threads may call unpack_entry at a time, within the memory that unpack_all keeps to.
unsigned threads_within_memory(const bundle::VerifiedBundle& bundle, unsigned threads);

// Unpacks, below the existing folder `staging`, the entries that are not finished yet. Throws the first failure once
// every thread has stopped; items finished before it stay in staging, since they are verified. `stamps` gets
// those of what this run unpacked; what an earlier run left has none, and so is hashed before it is used.
void unpack_all(const bundle::VerifiedBundle& bundle, std::vector<const bundle::Entry*> entries, const Prefix& prefix,
                const std::filesystem::path& staging, Disk& disk, unsigned threads, bundle::Progress& progress,
                Stamps& stamps);

}  // namespace sealift::installer
