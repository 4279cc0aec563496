// SPDX-License-Identifier: Apache-2.0
// What a job file may say about parallel training, as plain values.
// First in the flow: everything below is told what to do by a `Policy` and never reads an option itself.
// Names are the field's own (DDP, FSDP2), so a user finds the setting that they already know.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace sealift::train {

/// How ranks share the work: `None` is one process, the others differ only in the mesh that they make.
enum class ParallelMethod { None, Ddp, Fsdp, Hsdp };

/// Which `Shardable` blocks below the root become units of their own: all, or none (everything in the root's unit).
enum class Wrap { ByBlock, RootOnly };

/// How a model is spread over the ranks.
struct Policy {
  ParallelMethod method = ParallelMethod::None;
  std::int64_t shard_size = 0;        ///< `Hsdp` only: how many ranks share one copy of the model; divides the world
  Wrap wrap = Wrap::ByBlock;          ///< what is gathered and reduced together
  bool reshard_after_forward = true;  ///< FULL_SHARD when true, SHARD_GRAD_OP when false; the root always stays whole
  bool sync_module_states = true;     ///< start from rank 0's parameters and buffers on every rank
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
