// SPDX-License-Identifier: Apache-2.0
// The first check of a run: the program starts on each rank, and the ranks find each other.
// Before all others. Ranks that have begun to conduct have passed it; what can fail comes before that, where the draft
// (report/draft.hpp), which is kept from the beginning, has it as the check that runs.
// A check of its own, so that a rank that dies before any other is said where people look: in the report.
#pragma once

#include "verify/conduct/check_kind.hpp"

namespace sealift::verify {

/// Of the whole run: what the ranks of an earlier one did says nothing of these.
inline CheckKind start_check() {
  return {.name = "installation.start",
          .part = Part::Installation,
          .from = Level::Quick,
          .title = {"each rank starts and finds the others", "每个进程都能启动并找到其他进程"},
          .who = Who::EveryRank,
          .measure = [](const Site&) { return nlohmann::json::object(); },
          .judge = [](const auto&, const Site&, Check& check) { check.outcome = Outcome::Pass; },
          .of_whole_run = true};
}

}  // namespace sealift::verify
