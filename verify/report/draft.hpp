// SPDX-License-Identifier: Apache-2.0
// The report of a run that is not over: what is done, what runs since when, what is left.
// Rank 0 keeps it in OUT/checks while it conducts; the survivor of a dead rank makes the report of it.
// A file and not memory, since the process that has it may be the one that dies.
#pragma once

#include "verify/verdict/verdict.hpp"

#include <filesystem>

namespace sealift::verify {

struct Draft {
  Verdict verdict;          ///< its finished checks
  std::vector<Check> left;  ///< the first of them runs
  std::string since;        ///< UTC, when that began
  bool operator==(const Draft&) const = default;
};

/// Who or what ended the run.
struct Ending {
  std::vector<std::int64_t> ranks;  ///< of whom; none: of nobody, as with a signal to all
  Phrase how;                       ///< "was ended by signal 9 (SIGKILL)"
};

/// OUT/checks/under_way.json, and room beside it that is given up when the report could not be written else. Throws
/// std::invalid_argument when it cannot be written.
void keep_draft(const Draft& draft, const std::filesystem::path& folder);

/// Nothing where there is none, or it cannot be read.
std::optional<Draft> find_draft(const std::filesystem::path& folder);

/// Also what ranks said at their end.
void remove_draft(const std::filesystem::path& folder);

/// What a rank leaves to the maker of the report: why it ends. Does nothing where there is no draft.
void leave_word(const Ending& ending, std::int64_t of_rank, const std::filesystem::path& folder);

/// What rank `of_rank` left.
std::optional<Ending> find_word(std::int64_t of_rank, const std::filesystem::path& folder);

/// "rank 3 on gpu07 (cuda:3)", as far as `verdict` knows it.
Phrase name_of_rank(const Verdict& verdict, std::int64_t rank);

/// What the rank left that was the first to leave something.
std::optional<Ending> find_first_word(const std::filesystem::path& folder);

/// `ending`; where other ranks than its own say so, with the word of the first of them.
Ending with_word(Ending ending, const std::filesystem::path& folder);

/// The check that ran is FAIL by `ending`, those after it are NOT RUN.
Verdict finished_by(Draft draft, const Ending& ending, const std::string& now);

}  // namespace sealift::verify
