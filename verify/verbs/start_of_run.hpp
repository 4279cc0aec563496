// SPDX-License-Identifier: Apache-2.0
// What is known of a run before its ranks have met, so that one that dies or hangs there leaves a report too.
// In `run`: before the process of rank 0, or the one that starts it, does anything that can die; and once the ranks are
// connected, when each has a host and a device.
// The check that runs is `installation.start`.
#pragma once

#include "verify/report/draft.hpp"

#include "verify/conduct/check_kind.hpp"

#include <sealift/train.hpp>

namespace sealift::verify {

/// The draft of a run of which nothing was done: `site` as rank 0 sees it, with the `ranks` of its host, whose devices
/// are not known yet.
Draft first_draft(const Site& site, std::int64_t ranks, const std::vector<CheckKind>& kinds);

/// A rank that is connected says where it is.
void say_place(const train::World& world, const Node& mine);

/// Rank 0: adds to the draft in `folder` what ranks have said so far. Does nothing where the store is gone.
void note_places(const train::World& world, const std::filesystem::path& folder);

}  // namespace sealift::verify
