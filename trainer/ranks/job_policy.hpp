// SPDX-License-Identifier: Apache-2.0
// The job's settings as the core's `Policy`: the field's names in, one value out.
// Between options and the loop. The core checks each name; here is checked that settings do not contradict each other.
// The same file runs with any `parallel_method`, so a setting that a method does not use is no error.
#pragma once

#include "trainer/settings/job_options.hpp"

#include <sealift/train/names.hpp>

#include <stdexcept>

namespace sealift::trainer {

/// Computes in `dtype` what is kept in fp32 or `dtype`; sums and the loss are fp32. None: in the parameters' own.
inline train::MixedPrecision compute_precision(std::optional<at::ScalarType> dtype) {
  if (!dtype) return {};
  // Tables of positions are buffers, and lose what they are for in 16 bits.
  return {.param_dtype = dtype, .reduce_dtype = at::kFloat, .output_dtype = at::kFloat};
}

/// `precision`: what the verb's word for it means. Throws std::invalid_argument when two settings contradict each
/// other, c10::Error when a name is unknown.
inline train::Policy make_policy(const ParallelOptions& options, const train::MixedPrecision& precision) {
  const auto expect = [](bool holds, const std::string& what) {
    if (!holds) throw std::invalid_argument(what);
  };
  const auto offloaded = [&](const char* what) {
    return std::find(options.offload.begin(), options.offload.end(), what) != options.offload.end();
  };
  const bool has_method = !options.parallel_method.empty();
  train::Policy policy{
      .method = train::parse_parallel_method(has_method ? options.parallel_method : "none"),
      .shard_size = options.shard_size,
      .reshard_after_forward = options.reshard_after_forward.value_or(true),
      .reshard_group = options.reshard_group,
      .keep_gathered = !options.keep_gathered   ? train::KeepGathered::Auto
                       : *options.keep_gathered ? train::KeepGathered::Always
                                                : train::KeepGathered::Never,
      .reduce_every_micro_batch = options.reduce_every_micro_batch,
      .forward_prefetch = options.forward_prefetch,
      .backward_prefetch = options.backward_prefetch,
      .precision = precision,
      .offload = {.parameters = offloaded("parameters"),
                  .gradients = offloaded("gradients"),
                  .optimizer_state = offloaded("optimizer_state")},
      .bucket_bytes = options.bucket_mb << 20,
      .broadcast_buffers = false,  // no step changes one: those of a model are constants of its files
      .find_unused_parameters = options.find_unused_parameters,
  };

  if (const auto& strategy = options.sharding_strategy; !strategy.empty()) {
    train::set_sharding_strategy(policy, strategy);
    const std::string meant(train::to_string(policy.method));
    expect(!has_method || options.parallel_method == meant, "sharding_strategy " + strategy + " means " + meant +
                                                                " but parallel_method is " + options.parallel_method +
                                                                "; give one of the two");
    expect(options.reshard_after_forward.value_or(policy.reshard_after_forward) == policy.reshard_after_forward,
           "sharding_strategy " + strategy + " and reshard_after_forward contradict each other; give one of the two");
  }

  train::set_wrapping_strategy(policy, options.wrapping_strategy, options.blocks_per_unit, options.min_numel);
  return policy;
}

/// The same by the core's names for a precision, in which `run` has it.
inline train::Policy make_policy(const ParallelOptions& options) {
  auto precision = train::parse_precision(options.precision);
  const bool is_fp32 = precision == train::MixedPrecision{};
  if (!is_fp32) precision.output_dtype = at::kFloat;  // of the loss
  auto policy = make_policy(options, precision);
  if (!is_fp32 && policy.method == train::ParallelMethod::None) {
    throw std::invalid_argument("precision is " + options.precision +
                                ", which parallel_method none has no units for; use ddp or fsdp, which " +
                                "may have one rank");
  }
  return policy;
}

}  // namespace sealift::trainer
