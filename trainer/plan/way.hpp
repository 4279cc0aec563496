// SPDX-License-Identifier: Apache-2.0
// A way to train: the method, how many ranks share a copy, and what a job file can say beside.
// What `plan` compares; memory.hpp counts its bytes, step_shape.hpp its work.
// A value without a model: the same ways are tried on every model.
#pragma once

#include "trainer/plan/decoder_tape.hpp"

#include <string>

namespace sealift::trainer::plan {

enum class Method { None, Ddp, Fsdp, Hsdp };
std::string name_of(Method method);

/// One way to train: what a job file can say of it, and the ranks it has.
struct Way {
  Method method = Method::None;
  std::int64_t ranks = 1;
  std::int64_t shard = 1;  ///< ranks that share one copy of the model; 1 of ddp
  std::int64_t micro_batches = 1;
  Batch batch = {};
  bool recompute = false;
  bool reshard_after_forward = true;
  bool keep_gathered = false;  ///< between micro-batches; as keep_fits says where a job leaves it open
  bool reduce_every_micro_batch = false;
  bool offload_parameters = false, offload_gradients = false, offload_moments = false;

  std::int64_t copies() const { return ranks / shard; }
  bool narrow() const { return batch.compute_bytes < 4; }
};

}  // namespace sealift::trainer::plan
