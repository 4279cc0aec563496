// SPDX-License-Identifier: Apache-2.0
// [[golden]] of a job file: what a job computed outside, carried so that a site can compute it again and compare.
// Read with the job; it becomes a carried file at share/sealift/golden/NAME.json. `sealift-verify golden` writes it,
// `sealift-verify run` reads it; docs/verify_checks_training.md has the format.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "packager/lock/lock.hpp"
#include "packager/tables/toml_file.hpp"
#include "sealift/bundle/core/digest.hpp"

namespace sealift::packager {

// A job that `lock` runs itself.
struct GoldenJob {
  std::filesystem::path file;       // TOML, as `sealift-verify golden` reads it
  std::filesystem::path program;    // sealift-verify; empty: the carried one
  std::filesystem::path libraries;  // where that finds LibTorch on this machine; may be empty
  std::string device = "cpu";       // or cuda
};

struct JobGolden {
  std::string name;
  std::filesystem::path file;  // the recorded result, absolute; of a job once it was run
  std::optional<GoldenJob> job = {};
  std::map<std::string, bundle::Digest> inputs;  // of each file that the job read, by its path in the generation

  std::string into() const { return "share/sealift/golden/" + name + ".json"; }
};

// Checks the recorded results as strictly as a site does. Throws Usage naming file, line and what is wrong.
std::vector<JobGolden> read_job_goldens(TomlTable& job, const std::filesystem::path& folder);

// A result by itself: what the job read. Throws as read_job_goldens.
std::map<std::string, bundle::Digest> read_golden_result(const std::filesystem::path& file, const std::string& name);

// What the golden runs read must be what the lock carries, byte for byte: else a site would differ by no fault of its
// own. Throws Usage naming each file that is not carried, or carried with other bytes.
void require_inputs_of_goldens(const std::vector<JobGolden>& goldens, const Lock& lock);

}  // namespace sealift::packager
