// SPDX-License-Identifier: Apache-2.0
// The settings of one training job: each has one name, and may come from a flag, the environment or a TOML file.
// First step of `sealift-train run`: text in, an `Options` value out; nothing below reads a flag or a variable.
// One table names the settings, so that the three sources cannot differ.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace sealift::trainer {

struct Options {
  // What is computed.
  std::int64_t steps = 100;
  std::int64_t seed = 1;
  std::int64_t global_batch = 32;
  double learning_rate = 3e-3;
  double weight_decay = 0.01;
  double clip = 1.0;
  std::string precision = "fp32";
  std::int64_t vocabulary = 61;
  std::int64_t context = 32;
  std::int64_t layers = 5;
  std::int64_t width = 128;
  std::int64_t heads = 4;

  // How ranks share it; `make_policy` in job_policy.hpp says what these mean to the core.
  std::string parallel_method;    ///< empty: what `sharding_strategy` means, or none
  std::string sharding_strategy;  ///< empty: what `parallel_method` says
  std::int64_t shard_size = 0;
  std::string wrapping_strategy = "by_block";
  std::int64_t blocks_per_unit = 0;  ///< of a wrapping strategy that counts blocks
  std::int64_t min_numel = 0;
  std::optional<bool> reshard_after_forward;  ///< unset: as the sharding strategy says
  std::int64_t reshard_group = 0;

  // When ranks talk, and what for.
  std::int64_t micro_batches = 1;
  std::optional<bool> keep_gathered;  ///< unset: where memory is there for it
  bool reduce_every_micro_batch = false;
  std::int64_t forward_prefetch = 1;
  std::int64_t backward_prefetch = 1;
  std::int64_t bucket_mb = 25;
  bool find_unused_parameters = false;

  // What memory is saved at the price of time.
  bool recompute = false;
  std::vector<std::string> offload;

  // Where and for how long.
  std::string device = "auto";
  std::int64_t threads = 0;
  std::int64_t timeout_seconds = 300;
  std::string out = "sealift-train-out";
  std::string trace;
  std::string tensorboard;
  std::string checkpoint_folder;
  std::int64_t checkpoint_every = 0;
  std::int64_t keep_checkpoints = 2;
  std::string resume = "auto";
};

/// Whether a setting changes the numbers, or only the way to compute them.
enum class Changes { Numbers, Way };

/// One setting: `name` in TOML, `--name` with dashes as a flag, `SEALIFT_TRAIN_NAME` in the environment.
struct Setting {
  Changes changes;
  std::string name;
  std::string help;
  std::variant<std::int64_t Options::*, double Options::*, bool Options::*, std::optional<bool> Options::*,
               std::string Options::*, std::vector<std::string> Options::*>
      field;

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
