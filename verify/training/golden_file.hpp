// SPDX-License-Identifier: Apache-2.0
// The golden run as a file: a job, the bytes that it read, what it computed, where, and what may differ elsewhere.
// Written outside by `sealift-verify golden`, carried by [[golden]] into share/sealift/golden/, read by the checks.
// Floating-point numbers are texts of 17 digits, so that every reader has the very bits.
#pragma once

#include "verify/training/curves.hpp"
#include "verify/training/job.hpp"

namespace sealift::verify {

constexpr std::int64_t kMostGoldenRanks = 64;

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
  /// Relative, by "PRECISION", "PRECISION@ARCH" or "PRECISION@DEVICE"; the last that fits counts.
  std::map<std::string, double> tolerances = {};
};

/// Reads and checks all of it; throws std::invalid_argument naming file, key and what was expected.
Golden read_golden(const std::filesystem::path& file);
Golden golden_from(const nlohmann::json& json, const std::string& where);

nlohmann::ordered_json to_json(const Golden& golden);

/// Settings whose values are paths below the prefix.
bool is_path_setting(const std::string& name);

/// True for a path that stays below the prefix: relative, without "..", ".", empty parts and odd characters.
bool is_safe_path(const std::string& path);

/// The precision that the job computes in.
std::string precision_of(const TrainingJob& job);

/// What losses may differ by on `arch` and `device`.
double tolerance_of(const Golden& golden, const std::string& arch, const std::string& device);

}  // namespace sealift::verify
