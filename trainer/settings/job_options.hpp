// SPDX-License-Identifier: Apache-2.0
// What every verb that trains can be told: how ranks share the job, and where it runs and writes.
// Between settings.hpp and the options of a verb, whose struct derives from these and whose table includes the rows.
// The fields are the core's policy in words; `make_policy` in job_policy.hpp says what they mean to it.
#pragma once

#include "trainer/settings/settings.hpp"

namespace sealift::trainer {

/// How ranks share the work, when they talk, and what memory is saved at the price of time.
struct ParallelOptions {
  std::string precision = "fp32";

  std::string parallel_method;    ///< empty: what `sharding_strategy` means, or none
  std::string sharding_strategy;  ///< empty: what `parallel_method` says
  std::int64_t shard_size = 0;
  std::string wrapping_strategy = "by_block";
  std::int64_t blocks_per_unit = 0;  ///< of a wrapping strategy that counts blocks
  std::int64_t min_numel = 0;
  std::optional<bool> reshard_after_forward;  ///< unset: as the sharding strategy says
  std::int64_t reshard_group = 0;

  std::optional<bool> keep_gathered;  ///< unset: where memory is there for it
  bool reduce_every_micro_batch = false;
  std::int64_t forward_prefetch = 1;
  std::int64_t backward_prefetch = 1;
  std::int64_t bucket_mb = 25;
  bool find_unused_parameters = false;

  std::vector<std::string> offload;
};

/// Where a job runs and what it writes.
struct HostOptions {
  std::string device = "auto";
  std::int64_t threads = 0;
  std::int64_t timeout_seconds = 300;
  std::int64_t time_limit = 0;  ///< seconds; 0: none
  std::string out = "sealift-train-out";
  std::string trace;
  std::string tensorboard;
};

/// Throws std::invalid_argument on a value that no job can have.
void check_job_options(const ParallelOptions& parallel, const HostOptions& host);

/// The rows of `ParallelOptions` without precision, whose words differ between verbs.
template <class Options>
std::vector<SettingOf<Options>> parallel_settings() {
  using enum Changes;
  return {
      {Way, "parallel_method", "none, ddp, fsdp or hsdp; fine-tuning also auto: by the memory at hand",
       &Options::parallel_method},
      {Way, "sharding_strategy", "the same in FSDP1's names: FULL_SHARD, SHARD_GRAD_OP, HYBRID_SHARD, NO_SHARD",
       &Options::sharding_strategy},
      {Way, "shard_size", "hsdp: ranks that share one copy of the model", &Options::shard_size},
      {Way, "wrapping_strategy", "what is gathered together, in OLMo's names: by_block, by_block_group, root_only ...",
       &Options::wrapping_strategy},
      {Way, "blocks_per_unit", "of by_block_group and one_in_k, which need it", &Options::blocks_per_unit},
      {Way, "min_numel", "elements of the smallest unit, of size_based and by_block_and_size", &Options::min_numel},
      {Way, "reshard_after_forward", "true: gather again for backward; false: keep until then",
       &Options::reshard_after_forward},
      {Way, "reshard_group", "ranks of the group over which a unit is resharded after forward; 0: all",
       &Options::reshard_group},

      {Way, "keep_gathered", "true: keep units gathered between a step's micro-batches; unset: where memory allows",
       &Options::keep_gathered},
      {Way, "reduce_every_micro_batch", "true: less memory, more traffic", &Options::reduce_every_micro_batch},
      {Way, "forward_prefetch", "units gathered ahead in forward", &Options::forward_prefetch},
      {Way, "backward_prefetch", "units gathered ahead in backward", &Options::backward_prefetch},
      {Way, "bucket_mb", "MiB of one all-reduce of replicated gradients", &Options::bucket_mb},
      {Way, "find_unused_parameters", "true: ranks may use different parameters", &Options::find_unused_parameters},

      {Way, "offload", "to host memory: parameters, gradients, optimizer_state", &Options::offload},
  };
}

/// The rows of `HostOptions` without `out`, which has other names elsewhere.
template <class Options>
std::vector<SettingOf<Options>> host_settings() {
  using enum Changes;
  return {
      {Way, "device", "auto: a GPU for each rank where there is a driver; cpu; cuda: refuse to go without",
       &Options::device},
      {Way, "threads", "per rank; 0: the host's cores shared by its ranks", &Options::threads},
      {Way, "timeout_seconds", "how long a rank that does not answer is waited for", &Options::timeout_seconds},
      {Way, "time_limit", "seconds after which the run saves and ends, with exit code 124; 0: none",
       &Options::time_limit},
      {Way, "trace", "file for a Chrome trace of the last ten steps of all ranks; empty: none", &Options::trace},
      {Way, "tensorboard", "folder for TensorBoard's scalars of rank 0; empty: none", &Options::tensorboard},
  };
}

/// `first`, and then `rest`: a table of several parts.
template <class Setting>
std::vector<Setting> joined(std::vector<Setting> first, std::initializer_list<std::vector<Setting>> rest) {
  for (const auto& part : rest) first.insert(first.end(), part.begin(), part.end());
  return first;
}

}  // namespace sealift::trainer
