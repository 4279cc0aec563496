// SPDX-License-Identifier: Apache-2.0
// What a job file may say about parallel training, as plain values.
// First in the flow: the rest of the core takes a `Policy` and never reads an option itself.
// Names are FSDP2's where it has one; names.hpp sets them by those of other projects.
#pragma once

#include <sealift/train/compression.hpp>
#include <sealift/train/wrap.hpp>

#include <string_view>

namespace sealift::train {

/// How ranks share the work. `None` is one process; the others differ only in the mesh that they make.
enum class ParallelMethod { None, Ddp, Fsdp, Hsdp };

/// What is kept in host memory while the device does not use it; each setting is independent of the others.
struct Offload {
  bool parameters = false;       ///< shards and their gradients; stepped there, and copied to the device for a gather
  bool gradients = false;        ///< reduced ones, until the backward pass that ends the step returns
  bool optimizer_state = false;  ///< moments; for `FusedAdamW`, which reads this
  bool pin_memory = true;        ///< page-locked where the device is no CPU

  bool operator==(const Offload&) const = default;
};

/// Whether units stay gathered between the micro-batches of a step, which gathers and reduces each once but needs
/// memory for the whole model.
enum class KeepGathered {
  Auto,  ///< where memory is there, and ddp would hold no less
  Always,
  Never,
};

/// What is kept of a frozen floating parameter, by its name and itself, which may be on the meta device. The answer
/// must be the same on all ranks, and `Plain` for every other parameter.
using StorageChoice = std::function<StoredAs(const std::string& name, const at::Tensor& parameter)>;

/// How a model is spread over the ranks.
struct Policy {
  ParallelMethod method = ParallelMethod::None;
  std::int64_t shard_size = 0;        ///< `Hsdp` only: ranks that share one copy of the model; divides the world
  Wrap wrap = by_block();             ///< which parameters are gathered and reduced together
  bool reshard_after_forward = true;  ///< true: FULL_SHARD; false: SHARD_GRAD_OP. The root always stays whole
  bool sync_module_states = true;     ///< start from rank 0's parameters and buffers on every rank

  std::int64_t reshard_group =
      0;  ///< above 1: after forward, stay sharded over this many neighbours only (FSDP2's int)
  std::vector<std::string> ignored_parameters = {};  ///< names, `*` allowed: kept whole, neither reduced nor stepped

  KeepGathered keep_gathered = KeepGathered::Auto;  ///< parameters, between a step's micro-batches
  std::int64_t memory_budget = 0;                   ///< bytes of a rank, for `KeepGathered::Auto`; 0: ask what is free
  bool reduce_every_micro_batch = false;            ///< less memory, more traffic
  bool defer_all_reduce = true;        ///< hsdp: with `reduce_every_micro_batch`, sum over copies with the last only
  std::int64_t forward_prefetch = 1;   ///< units gathered ahead in forward; 0: none. All, in a step that stays gathered
  std::int64_t backward_prefetch = 1;  ///< the same in backward; at least 1 is FSDP1's BACKWARD_PRE

  /// Flats lie at the same addresses in every step, for memory that is registered or recorded; they keep it between
  /// steps.
  bool stable_addresses = false;

  MixedPrecision precision = {};
  Offload offload = {};
  Compression compression = {};  ///< of what travels; off by default
  StorageChoice store = {};      ///< of what is frozen, as for QLoRA; unset: everything as it is

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

}  // namespace sealift::train
