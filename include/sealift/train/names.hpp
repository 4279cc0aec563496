// SPDX-License-Identifier: Apache-2.0
// The settings of `Policy` by the names that FSDP1, Accelerate, OLMo, DeepSpeed and DDP have for them.
// Beside the flow: a program that reads a job file written for one of them calls these; the core reads `Policy` alone.
// Each name sets what it means there; what this core does otherwise is said here, and a name that would mean something
// else here is refused with the names that there are.
//
// Without a function, since they are no setting:
//   DDP's no_sync(), around all micro-batches but the last     Parallel::set_micro_batch, or set_requires_gradient_sync
//   ZeRO++'s zero_hpz_partition_size, FSDP2's int              Policy::reshard_group
//   MiCS's mics_shard_size                                     HYBRID_SHARD with Policy::shard_size
#pragma once

#include <sealift/train/bodies.hpp>
#include <sealift/train/policy.hpp>

#include <tuple>

namespace sealift::train {

/// Sets the method and `reshard_after_forward` that FSDP1's ShardingStrategy `name` means; after forward it frees:
///   FULL_SHARD     parameters                          HYBRID_SHARD         parameters, sharded within a group
///   SHARD_GRAD_OP  nothing until backward              _HYBRID_SHARD_ZERO2  nothing until backward, within a group
///   NO_SHARD       nothing, that is ddp                HYBRID_SHARD_ZERO2   Accelerate's spelling
/// A hybrid's group is a host there; here it is `shard_size` ranks.
void set_sharding_strategy(Policy& policy, std::string_view name);

/// Sets what DeepSpeed's ZeRO stage `name` (as ms-swift names its configurations) means for a step:
///   zero0  ddp
///   zero1  parameters stay whole, gradients are reduced with the last micro-batch
///   zero2  parameters stay whole, gradients are reduced with every micro-batch, so that none are whole in between
///   zero3  parameters are whole only while they are used, gradients as in zero2
/// With `zero2_offload` and `zero3_offload` shards, and so gradients and moments, are in host memory and stepped there.
/// Unlike there, stages 1 and 2 shard parameters between steps: the gather that DeepSpeed makes after the optimizer's
/// step comes with the next forward. The bytes are the same, and less memory is used.
void set_zero_stage(Policy& policy, std::string_view name);

/// Sets `wrap` as OLMo's wrapping strategy `name` means it; `blocks` is its block_group_size, and for one_in_k the k.
/// Its `_and_size` wraps embedding and head; here, every other `Shardable` of at least `min_numel` elements.
/// `root_only` and Accelerate's NO_WRAP are OLMo's null; TRANSFORMER_BASED_WRAP is by_block, since this core knows the
/// classes that a model repeats; SIZE_BASED_WRAP is size_based, whose `min_numel` of 0 means PyTorch's 1e8.
/// Throws when `blocks` is missing, or given where the name has no use for it.
void set_wrapping_strategy(Policy& policy, std::string_view name, std::int64_t blocks = 0, std::int64_t min_numel = 0);

/// OLMo's FSDPPrecision over fp32 shards, with `dtype` for its autocast precision: `fp32` (its null) computes in the
/// shards' dtype, `mixed` computes and keeps buffers in `dtype` and reduces in fp32, `pure` does all three in `dtype`.
MixedPrecision parse_precision(std::string_view name, at::ScalarType dtype = at::kBFloat16);

/// Sets FSDP1's BackwardPrefetch `name`: BACKWARD_PRE gathers the next unit before this one's backward; NONE, and
/// Accelerate's NO_PREFETCH, never.
void set_backward_prefetch(Policy& policy, std::string_view name);

/// Sets OLMo's DDPGradSyncMode `name`: `batch` reduces with the last micro-batch, as DDP does with no_sync() around the
/// others; `micro_batch` with every one. There it is ddp's alone; here it is any method's, and hsdp's copies included.
void set_grad_sync_mode(Policy& policy, std::string_view name);

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/names_inl.hpp>
#endif
