// SPDX-License-Identifier: Apache-2.0
// A step in numbers: what it does (StepShape), on what (Rates), how long it takes (StepTime) and what happens
// (StepEvent). What `simulate` is given and gives back; `plan` fills the shape, drawing.hpp draws the events. Values
// without a model, so that a cluster which nobody has can be asked about.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sealift::trainer {

/// What one unit costs in one micro-batch. Bytes are what one rank sends: a ring's (n - 1) / n of a buffer for a gather
/// and a reduce-scatter, twice that for an all-reduce.
struct UnitWork {
  double forward_flops = 0, backward_flops = 0;  ///< of one rank; backward with what recompute runs again
  std::int64_t gather_bytes = 0;                 ///< 0: every rank holds it whole
  std::int64_t reduce_bytes = 0;                 ///< 0: frozen
  std::string name = {};                         ///< for drawings; empty: its number, or "root"
  std::int64_t gather_again_bytes = -1;          ///< in backward, of a smaller group; -1: `gather_bytes`
  std::int64_t copies_bytes = 0;                 ///< hsdp: of the sum over copies that follows the reduction
  std::int64_t forward_memory_bytes = 0;         ///< read and written whatever the tokens: parameters
  std::int64_t backward_memory_bytes = 0;        ///< ... parameters, and gradients made and collected
  std::int64_t bus_in_bytes = 0;                 ///< offload.parameters: of the shard, before each gather
  std::int64_t bus_out_bytes = 0;                ///< offload: of the reduced gradients, after each reduction
};

/// What a step does. `units` are in forward order, the root first, as plan_units() lists them: it is gathered before
/// all others, computes after them (the head) and before them in backward, is never freed between, and is reduced last.
struct StepShape {
  std::vector<UnitWork> units;
  std::int64_t micro_batches = 1;
  bool gather_again_in_backward = true;   ///< units are freed after forward; the root is not
  bool reduce_every_micro_batch = false;  ///< false: with the last only; sums over copies always so
  std::int64_t offload_bytes = 0;         ///< over the bus while the optimizer steps, as moments in host memory
  std::int64_t optimizer_bytes = 0;       ///< that the optimizer and the norm read and write, of a rank's shards
  bool keep_gathered = false;             ///< with several micro-batches: each unit is gathered once a step
  std::int64_t forward_prefetch = 1, backward_prefetch = 1;
  std::int64_t bucket_bytes = 0;        ///< above 0: ddp, whose buckets send so much; else a reduction is a unit's
  std::int64_t first_bucket_bytes = 0;  ///< of the first bucket; 0: as the others
  std::int64_t small_collectives = 0;   ///< of no size at the end of the step, as of the norm and the loss
};

/// What one rank's machine does in a second. A rate is only asked for where something needs it.
struct Rates {
  double flops = 0;
  double link_bytes_per_second = 0;
  double link_latency_seconds = 0;  ///< of each collective, whatever its size
  double bus_bytes_per_second = 0;  ///< to and from the host's memory, each way
  double memory_bytes_per_second = 0;
  double copies_bytes_per_second = 0;      ///< the sums over copies have a link of their own; 0: they share
  double copies_latency_seconds = 0;       ///< ... and its latency
  std::int64_t collectives_at_once = 1;    ///< of one group: NCCL's stream runs one, Gloo's threads two
  double computing_lost_to_transfers = 0;  ///< the part of `flops` that a transfer takes while bytes move: 0 to 1
};

/// Seconds of a step; the five parts add up to the whole.
struct StepTime {
  double seconds = 0;
  double compute = 0;         ///< forward and backward, as long as they took beside transfers
  double exposed_gather = 0;  ///< nothing computed, since parameters were on their way
  double exposed_reduce = 0;  ///< ... gradients were, or small collectives
  double offload = 0;         ///< ... the bus had not brought or taken what was needed
  double optimizer = 0;

  double exposed() const { return exposed_gather + exposed_reduce + offload; }
};

/// The observer's activities, and what it does not see.
enum class StepActivity {
  Forward,
  Backward,
  Gather,
  GatherWait,
  Reduce,
  ReduceWait,
  SumOverCopies,
  CopyIn,
  CopyOut,
  SmallCollective,
  Optimizer
};
const char* to_string(StepActivity activity);

/// What runs beside each other. Waits lie in `Compute`.
enum class Stream { Compute, Gather, Reduce, Copies, Bus };
const char* to_string(Stream stream);

/// Something that began and ended; seconds since the step began.
struct StepEvent {
  StepActivity what = StepActivity::Forward;
  std::size_t unit = 0;  ///< of StepShape::units, or the bucket's number
  Stream stream = Stream::Compute;
  double begin = 0, end = 0;
  std::int64_t micro_batch = 0;
  bool critical = false;  ///< on the chain that determines the end; the chain's events touch and fill the step
  bool bucket = false;    ///< of ddp, not of a unit
};

/// "block3", "root", "bucket 2", or "" where an event is of no unit.
std::string name_of(const StepShape& shape, const StepEvent& event);

}  // namespace sealift::trainer
