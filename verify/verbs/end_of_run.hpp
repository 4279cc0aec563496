// SPDX-License-Identifier: Apache-2.0
// A run that does not come to its end leaves a report all the same, made by the survivor.
// Around `run`: the process of rank 0, or the one that starts it, stays beside as its keeper; a rank that ends leaves
// its word. What is known of the run is in the draft (report/draft.hpp).
// The keeper does nothing else, so that neither a signal nor want of memory in a check reaches it.
#pragma once

#include "verify/report/draft.hpp"

#include <functional>

namespace sealift::verify {

/// Name of the folders of ranks for temporary files.
inline constexpr const char* kScratch = "sealift-verify";

/// What an exception says of how it ended: "ended: no space left".
Phrase ended_by(const std::exception& error);

/// The end of a run that a signal told to end, which is nobody's fault here.
Ending told_to_end(int signal);

/// The end of `ranks`, before `signal` told the others to end, as a launcher does for it.
Ending lost_before(const std::vector<std::int64_t>& ranks, int signal);

/// Whether this process, or one above it, has a keeper.
bool is_kept();

/// What an exception says of who ended the run: a silent rank, ranks that did not come, or this one.
Ending ending_of(const std::exception& error, std::int64_t rank);

/// Makes the report of a run that did not come to its end, where there is a draft: FAIL for the check that ran, NOT RUN
/// for the rest. True if it did; where OUT has no room it goes to a folder of its own for temporary files, which is
/// said.
bool report_end(const Ending& ending, const std::filesystem::path& folder);

/// From here on kEndingSignals wait until keep_run has a keeper, which reports them: before a draft is
/// made.
void hold_signals();

/// Returns the code of `body`, in a process of its own. The keeper ends with that code, 128 and its
/// number for a signal; if there is a draft then, it makes the report, in which `rank` is at fault, and removes the
/// scratch of ranks that a signal ended. kEndingSignals are passed on, to who starts ranks as SIGTERM. In a process
/// that has a keeper, just `body`.
int keep_run(const std::function<int()>& body, std::optional<std::int64_t> rank, const std::filesystem::path& folder);

/// How a process ended, from its wait status: "was ended by signal 9 (SIGKILL), as the kernel does for want of memory".
Phrase ended_with(int status);

}  // namespace sealift::verify
