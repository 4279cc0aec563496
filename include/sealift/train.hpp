// SPDX-License-Identifier: Apache-2.0
// The training core, header-only over LibTorch. Start here: this is its table of contents, in dependency order.
// A program reads: launch -> connect -> make_groups -> build the model -> parallelize -> optimizer over the shards ->
// train as usual.
#pragma once

// clang-format off: the order is the message

#include <sealift/train/policy.hpp>            // what a job file may say: method, units, resharding
#include <sealift/train/mesh.hpp>              // ranks as replicate x shard: ddp (N,1), fsdp (1,N), hsdp (R,S)
#include <sealift/train/flat/flat_layout.hpp>       // sizes, padding, offsets: pure arithmetic
#include <sealift/train/comm/collective_label.hpp>  // what all ranks must bring to one collective
#include <sealift/train/comm/rank_watch.hpp>        // ranks that disagree, fail or stop end in one message on every rank
#include <sealift/train/comm/channel.hpp>           // a group's engines, Gloo and NCCL, and a collective in flight on them
#include <sealift/train/comm/collectives.hpp>       // the door to c10d; tickets, counters
#include <sealift/train/comm/groups.hpp>            // a world and a mesh -> connected groups
#include <sealift/train/comm/broadcast.hpp>         // many small tensors from rank 0
#include <sealift/train/flat/buffer_pool.hpp>       // memory of flats that is used again
#include <sealift/train/flat/flat_param.hpp>        // one flat: sharded <-> unsharded
#include <sealift/train/flat/flat_gradient.hpp>     // one buffer of gradients -> the mean, where the optimizer looks for it
#include <sealift/train/flat/reducer.hpp>           // which of them are reduced when; DDP's buckets
#include <sealift/train/unit/call_order.hpp>        // what to gather ahead
#include <sealift/train/unit/unit.hpp>              // before and after forward, before and after backward
#include <sealift/train/unit/tensor_walk.hpp>       // the tensors in what a forward takes or returns
#include <sealift/train/unit/unit_graph.hpp>        // hooks and nodes by which autograd calls a unit
#include <sealift/train/unit/unit_passes.hpp>       // what a forward and a backward pass do to all units
#include <sealift/train/shardable.hpp>         // the holder that lets a block become a unit
#include <sealift/train/unit_plan.hpp>         // which modules become units
#include <sealift/train/parallel.hpp>          // the model that was spread, as a training loop sees it
#include <sealift/train/parallelize.hpp>       // the verb
#include <sealift/train/step/clip.hpp>              // the gradient norm of the whole model; who spoiled a gradient
#include <sealift/train/step/scaler.hpp>            // fp16: scale the loss, skip the steps that overflowed, on all ranks alike
#include <sealift/train/step/adamw.hpp>             // AdamW in one pass, its moments on the host if asked
#include <sealift/train/step/recompute.hpp>         // keep a body's inputs only, run it again in backward
#include <sealift/train/launch/launch_variables.hpp>  // one launcher's variables, read with checks
#include <sealift/train/launch/launch.hpp>            // environment -> place in the world, for every launcher that is known
#include <sealift/train/launch/address.hpp>           // which address another host is reached from
#include <sealift/train/launch/rendezvous.hpp>        // place in the world -> a store where all ranks have met

#include <sealift/train/checkpoint/digest.hpp>            // SHA-256; the only door to libcrypto
#include <sealift/train/checkpoint/tensor_file.hpp>       // safetensors files: written whole and durable, or not at all
#include <sealift/train/checkpoint/optimizer_state.hpp>   // what an optimizer remembers, by name
#include <sealift/train/checkpoint/checkpoint_index.hpp>  // index.json: what was trained, how far, by which world
#include <sealift/train/checkpoint/stored_pieces.hpp>     // element ranges of tensors that lie in pieces in many files
#include <sealift/train/checkpoint/checkpoint_save.hpp>   // shards -> rank files -> index, at once or in the background
#include <sealift/train/checkpoint/checkpoint_load.hpp>   // into any world
#include <sealift/train/checkpoint/export.hpp>            // plain safetensors, out and in

// clang-format on
