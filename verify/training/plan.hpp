// SPDX-License-Identifier: Apache-2.0
// The verification job of this site: its settings by level, the site's own method, what it may differ by.
// Between site.toml's [training] and the jobs of this room's checks.
// The batch follows from the world, so that one process can compute the same step as any number of ranks.
#pragma once

#include "verify/training/job.hpp"

namespace sealift::verify {

/// [training] of site.toml.
struct TrainingExpectation {
  std::string precision = "fp32";
  std::optional<double> tolerance;              ///< unset: by precision
  std::optional<std::string> method;            ///< the site's own
  std::map<std::string, std::string> settings;  ///< of sealift-train, beside the method
  std::optional<std::string> shared_folder;     ///< that all ranks see
};

/// Throws std::invalid_argument naming the key that is unknown or of another kind.
TrainingExpectation training_expectation(const Site& site);

/// The losses' tolerance of `run` jobs here.
double tolerance_of(const TrainingExpectation& expected);

/// Steps of a job at the site's level: a few, or enough to reach the entropy of the data.
std::int64_t steps_of(const Site& site);

/// `sealift-train run` by `method` ("none" in fp32; otherwise one rank of ddp, which has units), with a batch that this
/// world and `local_ranks` divide.
TrainingJob plain_job(const Site& site, const std::string& name, const std::string& method);

/// How many ranks share one copy under hsdp; throws NotRun where `ranks` cannot be divided.
std::int64_t shard_size_of(const Site& site, std::int64_t ranks);

/// A folder that all ranks see, for checkpoints of check `name`; rank 0 must make it. Throws NotRun where there is
/// none.
std::filesystem::path folder_of_all(const Site& site, const std::string& name);

}  // namespace sealift::verify
