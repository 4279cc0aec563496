// SPDX-License-Identifier: Apache-2.0
// A golden run's job on this machine: by one process, as it was recorded, by all ranks of the site.
// Between the file and the checks; recording outside and comparing inside call the same functions.
// The rows of a step are the job's own, however ranks divide them, so that every crew computes the same curve.
#pragma once

#include "verify/training/golden_file.hpp"

namespace sealift::verify {

/// The job on `ranks`: whole paths below `prefix`, the recorded rows in each step, nothing saved on the way. Nothing
/// where so many ranks do not divide the rows.
std::optional<TrainingJob> job_on_ranks(const Golden& golden, const std::filesystem::path& prefix,
                                        const std::string& name, std::int64_t ranks);

/// As it is recorded, by `golden.ranks` processes that rank 0 starts on its host: as run_job, on rank 0 also `weights`
/// (SHA-256), `device` and `arch`. Empty on other ranks.
nlohmann::json run_as_recorded(const Site& site, const Golden& golden);

/// One process on rank 0, of a golden run that several recorded: as run_job, with `device` and `arch`.
nlohmann::json run_alone(const Site& site, const Golden& golden);

/// Whether rank 0's host has a device for each of `golden.ranks`: any CPU; of GPUs as many.
bool has_devices_for(const Site& site, const Golden& golden);

/// What kind of device a job ran on: equal names compute equal bits.
std::string device_name(const nlohmann::json& result);

/// The machine's architecture: "x86_64".
std::string arch_here();

/// SHA-256 over the bytes of `files`, one after the other. Throws std::runtime_error on one that cannot be read.
std::string digest_of_files(const std::vector<std::filesystem::path>& files);

/// The regular files at `place`, itself or below it, sorted.
std::vector<std::filesystem::path> files_at_place(const std::filesystem::path& place);

}  // namespace sealift::verify
