// SPDX-License-Identifier: Apache-2.0
// The golden run: recorded outside, trained again inside, and held against what was recorded.
// Above jobs and curves: `sealift-verify golden` records, the checks training.golden.NAME compare.
// One function runs the job on both sides, so that they cannot differ in how it is run.
#pragma once

#include "verify/training/golden_run.hpp"

namespace sealift::verify {

/// share/sealift/golden below a prefix.
std::filesystem::path golden_folder(const std::filesystem::path& prefix);

/// Names of the golden runs that `prefix` carries, sorted.
std::vector<std::string> golden_names(const std::filesystem::path& prefix);

/// Reads a golden job (TOML: name, verb, ranks, method, [settings], [tolerances]), runs it on `site` by one process or
/// its ranks, and returns what it computed. Throws std::invalid_argument on a job that cannot be carried,
/// std::runtime_error where it fails, or where one process does not compute what several ranks do.
Golden record_golden(const Site& site, const std::filesystem::path& job);

/// One check for each of `names`; a single one that is NOT RUN where there are none.
std::vector<CheckKind> golden_checks(const std::vector<std::string>& names);

/// Rank 0: `golden` (its file); `alone`, `recorded` of one that several ranks recorded, `world` of several ranks, each
/// as run_job, the crew that recorded it with `weights`, and `alone` with `device` and `arch`; `no_ranks` and
/// `no_world` where those were not run; `by_rank`, a setting for which it holds for one process; every host's first
/// rank: `changed`, files that are not those of the golden run.
void judge_golden(const std::vector<Measured>& all, Check& check);

/// SHA-256 of each of the job's files, by path below the prefix. Throws std::runtime_error on one that cannot be read.
std::map<std::string, std::string> inputs_of(const TrainingJob& job, const std::filesystem::path& prefix);

}  // namespace sealift::verify
