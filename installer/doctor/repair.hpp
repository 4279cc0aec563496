// SPDX-License-Identifier: Apache-2.0
// Repairs what the doctor found: damaged files of the store from a verified bundle, then those of the generations from
// the store. Each file is replaced by one rename, so that a running program sees the old or the right one.
#pragma once

#include "installer/doctor/compare_tree.hpp"
#include "installer/doctor/expected_tree.hpp"
#include "installer/upkeep/status.hpp"
#include "sealift/bundle/host/progress.hpp"

namespace sealift::installer {

// What the bundle does not bring stays as it is. The caller holds the prefix lock.
void repair(const std::vector<Deviation>& findings, const bundle::VerifiedBundle& bundle, const ItemRecords& records,
            const Status& status, const Prefix& prefix, Disk& disk, bundle::Progress& progress);

}  // namespace sealift::installer
