// SPDX-License-Identifier: Apache-2.0
// What a job file may say about parallel training, as plain values.
// First in the flow: the rest of the core takes a `Policy` and never reads an option itself.
// Names are the field's own (DDP, FSDP1, FSDP2, OLMo), so users find the settings that they already know.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sealift::train {

/// How ranks share the work. `None` is one process; the others differ only in the mesh that they make.
enum class ParallelMethod { None, Ddp, Fsdp, Hsdp };

/// Which `Shardable` modules below the root become units; parameters outside of them belong to the root's unit. A
/// *block* is a `Shardable` of a type that the model holds more than once (any `Shardable`, when none is repeated).
enum class Wrap {
  ByBlock,         ///< every block
  ByBlockAndSize,  ///< every block, and every other `Shardable` of at least `min_numel` elements (embeddings, head)
  ByBlockGroup,    ///< `blocks` consecutive blocks share a unit
  ByBlockGroupAndSize,  ///< groups of blocks, and others by size as in `ByBlockAndSize`
  OneInK,               ///< every `blocks`-th block, starting with the first; the blocks between belong to the root
  SizeBased,            ///< every `Shardable` of at least `min_numel` elements, not counting those of units within it
  RootOnly,             ///< none: the whole model is gathered and reduced at once
};

/// The dtypes in which a unit computes and reduces; unset means the parameters' own. FSDP2's MixedPrecisionPolicy.
struct MixedPrecision {
  std::optional<at::ScalarType> param_dtype = {};   ///< of gathered parameters; shards keep their own dtype
  std::optional<at::ScalarType> reduce_dtype = {};  ///< of the sum of gradients; unset: the shards' dtype
  std::optional<at::ScalarType> output_dtype = {};  ///< of floating tensors that the root's forward returns
  bool cast_forward_inputs = true;                  ///< cast floating inputs of a unit's forward to `param_dtype`

  bool operator==(const MixedPrecision&) const = default;
};

/// What is kept in host memory while the device does not use it; each setting is independent of the others.
struct Offload {
  bool parameters = false;       ///< shards and their gradients; stepped there, and copied to the device for a gather
  bool gradients = false;        ///< reduced ones, until `Parallel::prepare_step`
  bool optimizer_state = false;  ///< moments; for `FusedAdamW`, which reads this
  bool pin_memory = true;        ///< page-locked where the device is CUDA

  bool operator==(const Offload&) const = default;
};

/// Settings for the `Shardable` modules whose path matches; each becomes a unit whatever `wrap` says.
struct UnitOverride {
  std::string path = {};                           ///< like `layers.0.norm`; `*` stands for any run of characters
  bool replicate = false;                          ///< kept whole on every rank, gradients all-reduced, as under ddp
  std::optional<bool> reshard_after_forward = {};  ///< overrides the policy's
  std::optional<MixedPrecision> precision = {};    ///< overrides the policy's
};

/// How a model is spread over the ranks.
struct Policy {
  ParallelMethod method = ParallelMethod::None;
  std::int64_t shard_size = 0;        ///< `Hsdp` only: ranks that share one copy of the model; divides the world
  Wrap wrap = Wrap::ByBlock;          ///< which parameters are gathered and reduced together
  bool reshard_after_forward = true;  ///< true: FULL_SHARD; false: SHARD_GRAD_OP. The root always stays whole
  bool sync_module_states = true;     ///< start from rank 0's parameters and buffers on every rank

  std::int64_t blocks = 1;     ///< per unit, for a `wrap` that counts blocks
  std::int64_t min_numel = 0;  ///< for a `wrap` that counts elements; 0 means 1e8 for `SizeBased`
  std::int64_t reshard_group =
      0;  ///< above 1: after forward, stay sharded over this many neighbours only (FSDP2's int)
  std::vector<UnitOverride> overrides = {};          ///< the first match counts
  std::vector<std::string> ignored_parameters = {};  ///< names, `*` allowed: kept whole, neither reduced nor stepped

  bool keep_gathered = true;  ///< parameters, between a step's micro-batches; needs memory for the whole model
  bool reduce_every_micro_batch = false;  ///< less memory, more traffic
  bool defer_all_reduce = true;           ///< hsdp: with `reduce_every_micro_batch`, sum over copies with the last only
  std::int64_t forward_prefetch = 1;   ///< units gathered ahead in forward; 0: none. All, in a step that stays gathered
  std::int64_t backward_prefetch = 1;  ///< the same in backward; at least 1 is FSDP1's BACKWARD_PRE

  MixedPrecision precision = {};
  Offload offload = {};

  std::int64_t first_bucket_bytes = std::int64_t{1} << 20;  ///< of the first all-reduce of replicated gradients
  std::int64_t bucket_bytes = std::int64_t{25} << 20;       ///< of the later ones; DDP's bucket_cap_mb
  bool broadcast_buffers = true;        ///< ddp: rank 0's buffers before every forward in training mode
  bool find_unused_parameters = false;  ///< ranks may use different parameters; an unused one counts as zero
};

/// The name that a job file uses for `method`.
inline std::string_view to_string(ParallelMethod method) {
  switch (method) {
    case ParallelMethod::None:
      return "none";
    case ParallelMethod::Ddp:
      return "ddp";
    case ParallelMethod::Fsdp:
      return "fsdp";
    case ParallelMethod::Hsdp:
      return "hsdp";
  }
  TORCH_CHECK(false, "unknown parallel method ", static_cast<int>(method));
}

/// Reads the name that a job file uses; throws on any other.
inline ParallelMethod parse_parallel_method(std::string_view name) {
  for (auto method : {ParallelMethod::None, ParallelMethod::Ddp, ParallelMethod::Fsdp, ParallelMethod::Hsdp}) {
    if (name == to_string(method)) return method;
  }
  TORCH_CHECK(false, "parallel_method is '", std::string(name), "'; use one of none, ddp, fsdp, hsdp");
}

/// Sets the method and `reshard_after_forward` that FSDP1's ShardingStrategy `name` means; after forward it frees:
///   FULL_SHARD     parameters                          HYBRID_SHARD         parameters, sharded within a group
///   SHARD_GRAD_OP  nothing until backward              _HYBRID_SHARD_ZERO2  nothing until backward, within a group
///   NO_SHARD       nothing, that is ddp
inline void set_sharding_strategy(Policy& policy, std::string_view name) {
  struct Meaning {
    std::string_view name;
    ParallelMethod method;
    bool reshard;
  };
  static constexpr Meaning kMeanings[] = {{"FULL_SHARD", ParallelMethod::Fsdp, true},
                                          {"SHARD_GRAD_OP", ParallelMethod::Fsdp, false},
                                          {"HYBRID_SHARD", ParallelMethod::Hsdp, true},
                                          {"_HYBRID_SHARD_ZERO2", ParallelMethod::Hsdp, false},
                                          {"NO_SHARD", ParallelMethod::Ddp, true}};
  for (const auto& meaning : kMeanings) {
    if (meaning.name != name) continue;
    policy.method = meaning.method;
    policy.reshard_after_forward = meaning.reshard;
    return;
  }
  TORCH_CHECK(false, "sharding strategy is '", std::string(name),
              "'; use one of FULL_SHARD, SHARD_GRAD_OP, HYBRID_SHARD, _HYBRID_SHARD_ZERO2, NO_SHARD");
}

/// Sets `wrap` and `blocks` as OLMo's wrapping strategy `name` means them: by_block, by_block_and_size, by_block_group,
/// by_block_group_and_size, size_based, one_in_two .. one_in_five, or root_only (OLMo's null).
inline void set_wrapping_strategy(Policy& policy, std::string_view name) {
  struct Meaning {
    std::string_view name;
    Wrap wrap;
    std::int64_t blocks;  ///< 0: not changed
  };
  static constexpr Meaning kMeanings[] = {{"by_block", Wrap::ByBlock, 0},
                                          {"by_block_and_size", Wrap::ByBlockAndSize, 0},
                                          {"by_block_group", Wrap::ByBlockGroup, 0},
                                          {"by_block_group_and_size", Wrap::ByBlockGroupAndSize, 0},
                                          {"size_based", Wrap::SizeBased, 0},
                                          {"one_in_two", Wrap::OneInK, 2},
                                          {"one_in_three", Wrap::OneInK, 3},
                                          {"one_in_four", Wrap::OneInK, 4},
                                          {"one_in_five", Wrap::OneInK, 5},
                                          {"one_in_k", Wrap::OneInK, 0},
                                          {"root_only", Wrap::RootOnly, 0}};
  std::string known;
  for (const auto& meaning : kMeanings) {
    if (meaning.name == name) {
      policy.wrap = meaning.wrap;
      if (meaning.blocks > 0) policy.blocks = meaning.blocks;
      return;
    }
    known += (known.empty() ? "" : ", ") + std::string(meaning.name);
  }
  TORCH_CHECK(false, "wrapping strategy is '", std::string(name), "'; use one of ", known);
}

/// OLMo's presets over fp32 shards: `fp32` computes in the shards' dtype, `mixed` computes in `dtype` and reduces in
/// fp32, `pure` does both in `dtype`. Buffers keep their dtype.
inline MixedPrecision parse_precision(std::string_view name, at::ScalarType dtype = at::kBFloat16) {
  if (name == "fp32") return {};
  if (name == "mixed") return {.param_dtype = dtype, .reduce_dtype = at::kFloat};
  if (name == "pure") return {.param_dtype = dtype, .reduce_dtype = dtype};
  TORCH_CHECK(false, "precision is '", std::string(name), "'; use one of fp32, mixed, pure");
}

/// Sets FSDP1's BackwardPrefetch `name`: BACKWARD_PRE gathers the next unit before this one's backward, NONE never.
inline void set_backward_prefetch(Policy& policy, std::string_view name) {
  TORCH_CHECK(name == "BACKWARD_PRE" || name == "NONE", "backward prefetch is '", std::string(name),
              "'; use BACKWARD_PRE or NONE (BACKWARD_POST mispredicts nested modules and is not offered)");
  policy.backward_prefetch = name == "BACKWARD_PRE" ? std::max<std::int64_t>(1, policy.backward_prefetch) : 0;
}

}  // namespace sealift::train
