// SPDX-License-Identifier: Apache-2.0
// The training core, header-only over LibTorch. Start here: this is its table of contents, in dependency order.
// A program reads: launch -> connect -> make_groups -> build the model -> parallelize -> optimizer over the shards ->
// train as usual.
// A header includes only headers that stand above it, and a room only rooms above it. The face is in two places: what a
// program chooses (policy, mesh) is at the bottom of everything, what it gets (parallelize) below what a loop uses.
#pragma once

// The order is the message.
// clang-format off

// the face: what a program chooses
#include <sealift/train/policy.hpp>                       // what a job file may say: method, units, resharding
#include <sealift/train/mesh.hpp>                         // ranks as a grid, replicate x shard

// comm: collectives between ranks
#include <sealift/train/comm/collective_label.hpp>        // what all ranks must agree on about one collective
#include <sealift/train/comm/issued_collectives.hpp>      // what a rank has issued, what it waits for, why it stopped
#include <sealift/train/comm/watch_store.hpp>             // epochs, reports and failures in the store
#include <sealift/train/comm/rank_watch.hpp>              // the thread that turns a hang into one message on every rank
#include <sealift/train/comm/channel.hpp>                 // a group's engines (Gloo, NCCL); a collective in flight
#include <sealift/train/comm/collectives.hpp>             // the door to c10d; tickets, counters
#include <sealift/train/comm/groups.hpp>                  // a world and a mesh -> connected groups
#include <sealift/train/comm/broadcast.hpp>               // many small tensors from rank 0

// launch: how ranks find each other
#include <sealift/train/launch/launch_variables.hpp>      // one launcher's variables, read with checks
#include <sealift/train/launch/launch.hpp>                // environment -> place in the world, for every known launcher
#include <sealift/train/launch/address.hpp>               // the address from which another host is reached
#include <sealift/train/launch/rendezvous.hpp>            // place in the world -> a store where all ranks have met

// flat: parameters and gradients as one buffer
#include <sealift/train/flat/flat_layout.hpp>             // sizes, padding, offsets: pure arithmetic
#include <sealift/train/flat/buffer_pool.hpp>             // memory of flats, kept for the next flat
#include <sealift/train/flat/flat_param.hpp>              // one flat: sharded <-> unsharded
#include <sealift/train/flat/flat_gradient.hpp>           // one buffer of gradients -> their mean, on the leaves
#include <sealift/train/flat/buckets.hpp>                 // how replicated gradients are cut into all-reduces
#include <sealift/train/flat/reducer.hpp>                 // which gradients are reduced when

// unit: what is gathered and reduced together
#include <sealift/train/unit/call_order.hpp>              // what to gather ahead
#include <sealift/train/unit/unit.hpp>                    // before and after forward, before and after backward
#include <sealift/train/unit/tensor_walk.hpp>             // the tensors in a forward's arguments and results
#include <sealift/train/unit/unit_graph.hpp>              // hooks and nodes by which autograd calls a unit
#include <sealift/train/unit/unit_passes.hpp>             // what a forward and a backward pass do to all units

// the face: what a program gets
#include <sealift/train/shardable.hpp>                    // the holder that lets a block become a unit
#include <sealift/train/unit_plan.hpp>                    // which modules become units
#include <sealift/train/parallel.hpp>                     // the parallel model as a training loop sees it
#include <sealift/train/parallelize.hpp>                  // the verb

// step: what a training loop puts between the core's calls
#include <sealift/train/step/clip.hpp>                    // the gradient norm of the whole model; find_nonfinite
#include <sealift/train/step/scaler.hpp>                  // fp16: scale the loss; all ranks skip a step that overflowed
#include <sealift/train/step/adamw.hpp>                   // AdamW in one pass, its moments on the host if asked
#include <sealift/train/step/recompute.hpp>               // keep a body's inputs only, run it again in backward

// checkpoint: save, load, export
#include <sealift/train/checkpoint/digest.hpp>            // SHA-256; the only door to libcrypto
#include <sealift/train/checkpoint/tensor_file.hpp>       // safetensors files: written whole and durable, or not at all
#include <sealift/train/checkpoint/optimizer_state.hpp>   // an optimizer's state, by name
#include <sealift/train/checkpoint/checkpoint_index.hpp>  // index.json: the model, the step and the world that saved
#include <sealift/train/checkpoint/stored_pieces.hpp>     // element ranges of tensors that lie in pieces in many files
#include <sealift/train/checkpoint/checkpoint_save.hpp>   // shards -> rank files -> index, at once or in the background
#include <sealift/train/checkpoint/checkpoint_load.hpp>   // into any world
#include <sealift/train/checkpoint/export.hpp>            // plain safetensors, out and in

// clang-format on
