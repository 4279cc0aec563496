// SPDX-License-Identifier: Apache-2.0
// The training core, header-only over LibTorch. Start here: this is its table of contents, in dependency order.
// A program reads: launch -> connect -> build the model -> parallelize -> optimizer over the shards -> train as usual.
// A header includes only headers that stand above it, and a room only rooms above it. The face is in two places: what a
// program chooses (policy, mesh) is at the bottom of everything, what it gets (parallelize) below what a loop uses.
#pragma once

// The order is the message.
// clang-format off

// Not here: <sealift/train/comm/gloo_turns.hpp>, which a program includes whose ranks share cores (Gloo spins without it).

// the face: what a program chooses
#include <sealift/train/bodies.hpp>                       // whether headers bring their bodies, or one source of the program does
#include <sealift/train/compression.hpp>                  // what may travel smaller than it is
#include <sealift/train/precision.hpp>                    // the dtypes in which a unit computes and reduces
#include <sealift/train/wrap.hpp>                         // which modules become units: one function, and its makers
#include <sealift/train/policy.hpp>                       // what a job file may say: method, units, resharding
#include <sealift/train/names.hpp>                        // the same by FSDP1's, OLMo's and DeepSpeed's names
#include <sealift/train/mesh.hpp>                         // ranks as a grid with named axes

// comm: collectives between ranks
#include <sealift/train/comm/observer.hpp>                // what a rank tells about its units: begun, ended
#include <sealift/train/comm/collective_label.hpp>        // what all ranks must agree on about one collective
#include <sealift/train/comm/device.hpp>                  // what the core asks of a device, in c10's words
#include <sealift/train/comm/device_works.hpp>            // what a device has not finished
#include <sealift/train/comm/rank_report.hpp>             // where a rank is, told to others that wait
#include <sealift/train/comm/issued_collectives.hpp>      // what a rank has issued, what it waits for, why it stopped
#include <sealift/train/comm/watch_store.hpp>             // epochs, reports and failures in the store
#include <sealift/train/comm/engines.hpp>                 // the seam through which engines of collectives come
#include <sealift/train/comm/rank_watch.hpp>              // the thread that turns a hang into one message on every rank
#include <sealift/train/comm/channel.hpp>                 // a group's engines (Gloo, a device's) and what it remembers
#include <sealift/train/comm/in_flight.hpp>               // a collective: what it sends, how it is waited for
#include <sealift/train/comm/rank_order_sum.hpp>          // what ranks have sent, added with the same bits everywhere
#include <sealift/train/comm/label_check.hpp>             // whether all ranks come to the same collective
#include <sealift/train/comm/collectives.hpp>             // the door to c10d; tickets, counters
#include <sealift/train/comm/nccl_backend.hpp>            // c10d's NCCL as one of them, where the program is built with it
#include <sealift/train/comm/connections.hpp>             // what the groups of a world share
#include <sealift/train/comm/groups.hpp>                  // a world and a mesh -> groups along its axes
#include <sealift/train/comm/broadcast.hpp>               // many small tensors from rank 0

// launch: how ranks find each other
#include <sealift/train/launch/launch_variables.hpp>      // one launcher's variables, read with checks
#include <sealift/train/launch/foreign_launchers.hpp>     // launchers that are refused by name
#include <sealift/train/launch/launch.hpp>                // environment -> place in the world, for every known launcher
#include <sealift/train/launch/address.hpp>               // the address from which another host is reached
#include <sealift/train/launch/control_groups.hpp>        // the control groups of this process
#include <sealift/train/launch/host_share.hpp>            // what of its host it may use
#include <sealift/train/launch/host_offer.hpp>            // what ranks tell each other of their hosts
#include <sealift/train/launch/rendezvous.hpp>            // place in the world -> a store where all ranks have met

// flat: parameters and gradients as one buffer
#include <sealift/train/flat/flat_layout.hpp>             // sizes, padding, offsets: pure arithmetic
#include <sealift/train/flat/steady_buffers.hpp>          // memory of flats that keeps its addresses
#include <sealift/train/flat/buffer_pool.hpp>             // memory of flats, kept for the next flat
#include <sealift/train/flat/codec.hpp>                   // how a shard travels in a gather: as it is, as bytes
#include <sealift/train/flat/guard.hpp>                   // tensors that throw when they are read
#include <sealift/train/flat/meta_device.hpp>             // build a model without memory
#include <sealift/train/flat/source.hpp>                  // where first values come from
#include <sealift/train/flat/fill_shard.hpp>              // ... of a rank's shard
#include <sealift/train/flat/stored_shard.hpp>            // a frozen shard that is kept encoded: the seam, int8, fp8
#include <sealift/train/flat/nf4.hpp>                     // bitsandbytes' four bits: arithmetic
#include <sealift/train/flat/nf4_decoder.hpp>             // ... decoded by a kernel: the seam
#include <sealift/train/flat/nf4_codec.hpp>               // ... of a flat's shards
#include <sealift/train/flat/stored_codec.hpp>            // which of these keeps a shard
#include <sealift/train/flat/side_streams.hpp>            // copies from and to the host, beside the work
#include <sealift/train/flat/flat_param.hpp>              // one flat: sharded <-> unsharded
#include <sealift/train/flat/transport.hpp>               // how gradients are summed: as they are, in fp16 or bf16
#include <sealift/train/flat/power_sgd.hpp>               // what PowerSGD remembers from step to step
#include <sealift/train/flat/power_sgd_transport.hpp>     // gradients as two factors of low rank
#include <sealift/train/flat/gradient_mark.hpp>           // what the loop finds where a gradient is not
#include <sealift/train/flat/host_copy.hpp>               // a tensor on its way from a device to the host
#include <sealift/train/flat/leaf_gradients.hpp>          // where reduced gradients end
#include <sealift/train/flat/add_product.hpp>             // a product that adds itself to a sum
#include <sealift/train/flat/flat_gradient.hpp>           // one buffer of gradients -> their mean, on the leaves
#include <sealift/train/flat/buckets.hpp>                 // how replicated gradients are cut into all-reduces
#include <sealift/train/flat/reducer.hpp>                 // which gradients are reduced when

// unit: what is gathered and reduced together
#include <sealift/train/unit/call_order.hpp>              // what to gather ahead
#include <sealift/train/unit/unit.hpp>                    // before and after forward, before and after backward
#include <sealift/train/unit/tensor_walk.hpp>             // the tensors in a forward's arguments and results
#include <sealift/train/unit/unit_graph.hpp>              // hooks and nodes by which autograd calls a unit

// the face: what a program gets
#include <sealift/train/shardable.hpp>                    // the holder that lets a block become a unit
#include <sealift/train/unit_choice.hpp>                  // what the policy says of each module
#include <sealift/train/unit_plan.hpp>                    // which units there are, and which parameters each holds
#include <sealift/train/first_values.hpp>                 // ... of what is whole on every rank, and that none is missing
#include <sealift/train/keep_choice.hpp>                  // whether units stay gathered between micro-batches
#include <sealift/train/split_along.hpp>                  // modules that differ along an axis of the mesh, as experts
#include <sealift/train/parallel.hpp>                     // the parallel model as a training loop sees it
#include <sealift/train/parallelize.hpp>                  // the verb

// step: what a training loop puts between the core's calls
#include <sealift/train/step/clip.hpp>                    // the gradient norm of the whole model; find_nonfinite
#include <sealift/train/step/scaler.hpp>                  // fp16: scale the loss; all ranks skip a step that overflowed
#include <sealift/train/step/visit_device.hpp>            // through a device and back, copies beside the work
#include <sealift/train/step/adamw.hpp>                   // AdamW in one pass, its moments on the host if asked
#include <sealift/train/step/join.hpp>                    // ranks that run out of data go on taking part
#include <sealift/train/step/replay_state.hpp>            // random numbers and autocast, as a body found them
#include <sealift/train/step/recompute.hpp>               // keep a body's inputs only, run it again in backward
#include <sealift/train/step/profiler_ranges.hpp>          // units in LibTorch's profiler
#include <sealift/train/step/step_times.hpp>               // seconds of forward, backward, communication and waits
#include <sealift/train/step/timeline.hpp>                 // when each activity of the units began and ended

// checkpoint: save, load, export
#include <sealift/train/checkpoint/digest.hpp>            // SHA-256; the only door to libcrypto
#include <sealift/train/checkpoint/tensor_file.hpp>       // safetensors files: written whole and durable, or not at all
#include <sealift/train/checkpoint/optimizer_state.hpp>   // an optimizer's state, by name
#include <sealift/train/checkpoint/checkpoint_index.hpp>  // index.json: the model, the step and the world that saved
#include <sealift/train/checkpoint/stored_pieces.hpp>     // element ranges of tensors that lie in pieces in many files
#include <sealift/train/checkpoint/checkpoint_save.hpp>   // shards -> rank files -> index, at once or in the background
#include <sealift/train/checkpoint/checkpoint_load.hpp>   // into any world
#include <sealift/train/checkpoint/safetensors_source.hpp>  // first values from plain files, each rank its ranges
#include <sealift/train/checkpoint/export.hpp>            // plain safetensors, out and in

// clang-format on
