// SPDX-License-Identifier: Apache-2.0
// Runs a list of checks, one after the other, on all ranks, and records each result as soon as it is there.
// Middle of `sealift-verify run`: kinds and a site in, checks out on rank 0. A stopped run goes on after the last
// recorded check.
// What ranks say to each other goes through `Exchange`, so that tests conduct several ranks as threads.
#pragma once

#include "verify/conduct/check_kind.hpp"

namespace sealift::verify {

/// How ranks meet around a check: each gives a text, rank 0 gets all, and rank 0's answer goes to all.
struct Exchange {
  std::function<std::vector<std::string>(const std::string& mine)> gather;  ///< on rank 0 by rank; else empty
  std::function<std::string(const std::string& from_first)> broadcast;
  std::function<std::int64_t()> free_port;  ///< called on rank 0
};

/// An exchange of a world of one.
Exchange alone();

/// What rank 0 gets; others nothing.
struct Conducted {
  std::vector<Check> checks;
  std::string began;  ///< UTC, of the first check that was run, also of one that an earlier run recorded; may be empty
};

/// What rank 0 is told before each check: the finished ones, and the others, of which the first runs next.
using Progress = std::function<void(const std::vector<Check>& done, const std::vector<Check>& left)>;

/// `kinds` from number `first` on, as checks that were not run yet; checks that `site` leaves out say so.
std::vector<Check> checks_left(const std::vector<CheckKind>& kinds, std::size_t first, const Site& site);

/// Runs those of `kinds` that `site.level` and `site.only` ask for; each other one is NOT RUN and says so. Rank 0
/// records each in OUT/checks/NAME.json, beside `identity`; a check that passed or failed under the same identity is
/// taken from there. `say` gets one line a check on rank 0, `progress` is called there before each.
Conducted conduct(const std::vector<CheckKind>& kinds, Site site, const Exchange& exchange, const std::string& identity,
                  const std::function<void(const std::string&)>& say, const Progress& progress = {});

}  // namespace sealift::verify
