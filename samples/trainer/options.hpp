// SPDX-License-Identifier: Apache-2.0
// What one training job is: every setting has one name, and may come from a flag, the environment or a TOML file.
// First step of `sealift-train run`: text in, an `Options` value out; nothing below reads a flag or a variable.
// One table names the settings, so the three sources cannot drift apart.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace sealift::trainer {

struct Options {
  std::string parallel_method = "none";
  std::int64_t shard_size = 0;
  std::int64_t steps = 100;
  std::int64_t seed = 1;
  std::int64_t global_batch = 32;
  std::int64_t micro_batches = 1;
  double learning_rate = 3e-3;
  double weight_decay = 0.01;
  double clip = 1.0;
  std::int64_t vocabulary = 61;
  std::int64_t context = 32;
  std::int64_t layers = 5;
  std::int64_t width = 128;
  std::int64_t heads = 4;
  std::int64_t threads = 0;
  std::int64_t timeout_seconds = 300;
  std::string out = "sealift-train-out";
  std::string checkpoint_folder;
  std::int64_t checkpoint_every = 0;
  std::int64_t keep_checkpoints = 2;
  std::string resume = "auto";
};

/// One setting: `name` in TOML, `--name` with dashes as a flag, `SEALIFT_TRAIN_NAME` in the environment.
struct Setting {
  std::string name;
  std::string help;
  std::variant<std::int64_t Options::*, double Options::*, std::string Options::*> field;

  std::string flag() const;
  std::string variable() const;
};

/// All settings, in the order of the help text.
const std::vector<Setting>& settings();

/// Text by setting name, as flags, variables and files give it.
using Texts = std::map<std::string, std::string>;

/// Flag over environment over file (`config_file` may be empty) over default; throws std::invalid_argument naming what
/// is wrong and where it came from.
Options read_options(const Texts& flags, const std::string& config_file);

/// The settings that change the numbers, as text by name: two runs are comparable when these are equal.
Texts comparable(const Options& options);

}  // namespace sealift::trainer
