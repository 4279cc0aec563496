// SPDX-License-Identifier: Apache-2.0
// The golden run as the checks know it: its file (bundle/core/golden_file.hpp), with its job as one of theirs.
// Written outside by `sealift-verify golden`, carried by [[golden]] into share/sealift/golden/, read by the checks.
// Floating-point numbers are texts of 17 digits, so that every reader has the very bits.
#pragma once

#include "bundle/core/golden_file.hpp"
#include "verify/training/curves.hpp"
#include "verify/training/job.hpp"

namespace sealift::verify {

constexpr auto kMostGoldenRanks = static_cast<std::int64_t>(bundle::kMaxGoldenRanks);

struct Golden {
  std::string name = {};
  TrainingJob job = {};         ///< its paths are relative to the prefix; batches are those of a rank
  std::int64_t ranks = 1;       ///< that computed it, on one host
  std::string method = "none";  ///< of several ranks: ddp or fsdp
  std::int64_t rows = 0;        ///< of a step; 0 where the job says it by itself (`run`)
  std::map<std::string, std::string> inputs = {};  ///< SHA-256 of each file that was read, by path below the prefix
  std::vector<double> losses = {}, norms = {};
  std::string weights = {};  ///< SHA-256 of the final parameters as they are saved
  std::string device = {};   ///< "NVIDIA H100 80GB HBM3", or a processor's name; equal names compute equal bits
  std::string arch = {};     ///< "x86_64"
  std::string torch = {};    ///< LibTorch's version
  std::int64_t threads = 1;
  std::string by_rank = {};  ///< the setting for which it holds for one process only (by_rank.hpp); or empty
  /// Relative, by "PRECISION", "PRECISION@ARCH" or "PRECISION@DEVICE"; the last that fits counts.
  std::map<std::string, double> tolerances = {};
};

/// Reads and checks all of it; throws std::invalid_argument naming file, key and what was expected.
Golden read_golden(const std::filesystem::path& file);
Golden golden_from(const nlohmann::json& json, const std::string& where);

nlohmann::ordered_json to_json(const Golden& golden);

using bundle::is_path_below;
using bundle::is_path_setting;

/// The precision that the job computes in.
std::string precision_of(const TrainingJob& job);

/// What losses may differ by on `arch` and `device`.
double tolerance_of(const Golden& golden, const std::string& arch, const std::string& device);

}  // namespace sealift::verify
