// SPDX-License-Identifier: Apache-2.0
// The verb: spreads a model over the ranks of a mesh and returns what its optimizer must step.
// Order: plan the units -> check that all ranks agree -> turn each unit's parameters into flats -> fill the slots.
// Everything is checked before the first parameter is changed, so an error leaves the model as it was.
#pragma once

#include <sealift/train/bodies.hpp>
#include <sealift/train/first_values.hpp>
#include <sealift/train/keep_choice.hpp>
#include <sealift/train/parallel.hpp>
#include <sealift/train/split_along.hpp>

namespace sealift::train {

namespace detail {

/// A flat holds parameters of one dtype, either trainable or frozen, so that frozen ones cost no gradients.
std::vector<std::vector<NamedTensor>> split_into_flats(const std::vector<NamedTensor>& parameters);

}  // namespace detail

/// Spreads `model`, which must be held in `Shardable`, over `groups`, as for a second model on the same connections.
/// With `ParallelMethod::None` it is not changed. Parameters keep their identity but are whole only while they are
/// used. First values are those of `source`, which is used during the call only; without one they are rank 0's, and
/// other ranks may build under `MetaDevice`. Collective.
///
/// What a step then does, unit by unit, a unit being what `Policy::wrap` chose and the root what is left:
/// - Before a unit's forward its flats are gathered: an all-gather over the shard group, started unless one runs
///   already or the values are there, and waited for. Then the gathers of the `forward_prefetch` units that came next
///   in the forward before are started, so that they travel while this one computes; in the first forward there are
///   none. The root's forward comes first, so it is gathered first.
/// - After the forward the whole is freed again, unless `reshard_after_forward` is off (SHARD_GRAD_OP), or, with
///   `reshard_group`, all but this rank's part in that group. The root stays whole, since backward begins with it. A
///   forward without a graph frees every unit at once, for no backward would.
/// - When a gradient reaches an output of the unit, it is gathered again and waited for, and the gathers of the
///   `backward_prefetch` units that were called before it are started: backward takes the calls in reverse.
/// - Autograd leaves each parameter's gradient in its `grad`; a hook moves it into the flat's buffer, divided by the
///   world size, and adds to what earlier micro-batches left there.
/// - When everything between the unit's inputs and outputs has run backward, for each call that this pass comes to, the
///   whole is freed and the buffer's reduce-scatter over the shard group is started; with copies (hsdp) an all-reduce
///   of the shard over them follows. It travels while backward goes on, and the next unit's starts when it is done: one
///   unit's whole gradients are in flight, no more.
/// - Parameters that are whole on every rank (ddp) have no gathers. Their gradients are cut into buckets, each
///   all-reduced as soon as it is full, in an order that is the same on all ranks: the model's in reverse in the first
///   pass, then that in which gradients came on rank 0.
/// - At the end of backward, what did not close is closed and freed, and every reduction is waited for. So when
///   backward returns, each of `Parallel::shards()` has its mean in `grad`, and the optimizer waits for nothing.
/// - The optimizer steps the shards. The next forward knows what was gathered before as old and gathers it again.
/// Between the micro-batches that `Parallel::set_micro_batch` announces, gradients are only collected, and units stay
/// gathered where `KeepGathered` allows it: each is then gathered and reduced once in the step. On a device nothing
/// of this blocks the host: to wait means that the current stream waits.
Parallel parallelize(torch::nn::Module& model, Groups groups, const Policy& policy, Source* source = nullptr);

/// The same over groups of its own, made of `world` as `policy` says. Collective.
Parallel parallelize(torch::nn::Module& model, const World& world, const Policy& policy, Source* source = nullptr);

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/parallelize_inl.hpp>
#endif
