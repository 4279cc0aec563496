// SPDX-License-Identifier: Apache-2.0
// The settings of `sealift-train run`: each has one name, and may come from a flag, the environment or a TOML file.
// First step of the verb: text in, an `Options` value out; nothing below reads a flag or a variable.
// One table names the settings, so that the three sources cannot differ. What every verb that trains has is in
// job_options.hpp.
#pragma once

#include "trainer/settings/job_options.hpp"

namespace sealift::trainer {

struct Options : ParallelOptions, HostOptions {
  // What is computed.
  std::int64_t steps = 100;
  std::int64_t seed = 1;
  std::int64_t global_batch = 32;
  double learning_rate = 3e-3;
  double weight_decay = 0.01;
  double clip = 1.0;
  std::int64_t vocabulary = 61;
  std::int64_t context = 32;
  std::int64_t layers = 5;
  std::int64_t width = 128;
  std::int64_t heads = 4;

  std::int64_t micro_batches = 1;
  bool recompute = false;

  std::string checkpoint_folder;
  std::int64_t checkpoint_every = 0;
  std::int64_t keep_checkpoints = 2;
  std::string resume = "auto";
};

using Setting = SettingOf<Options>;

/// All settings, in the order of the help text.
const std::vector<Setting>& settings();

/// Flag over environment over file (`config_file` may be empty) over default; throws std::invalid_argument naming what
/// is wrong and where it came from.
Options read_options(const Texts& flags, const std::string& config_file);

/// The settings that change the numbers, as text by name: two runs are comparable when these are equal.
Texts comparable(const Options& options);

}  // namespace sealift::trainer
