// SPDX-License-Identifier: Apache-2.0
// The training core, header-only over LibTorch. Start here: this is its table of contents, in dependency order.
// A program reads: launch -> make_groups -> build the model -> parallelize -> optimizer over the shards -> train as
// usual.
#pragma once

// clang-format off: the order is the message

#include <sealift/train/policy.hpp>       // what a job file may say: method, units, resharding
#include <sealift/train/mesh.hpp>         // ranks as replicate x shard: ddp (N,1), fsdp (1,N), hsdp (R,S)
#include <sealift/train/flat_layout.hpp>  // sizes, padding, offsets: pure arithmetic
#include <sealift/train/collectives.hpp>  // the only door to c10d; groups, tickets, counters
#include <sealift/train/flat_param.hpp>   // one flat: sharded <-> unsharded, gradients -> shard gradients
#include <sealift/train/unit.hpp>         // before and after forward, before and after backward
#include <sealift/train/shardable.hpp>    // the holder that lets a block become a unit
#include <sealift/train/parallelize.hpp>  // the verb
#include <sealift/train/clip.hpp>         // the gradient norm of the whole model
#include <sealift/train/launch.hpp>       // environment -> place in the world

#include <sealift/train/digest.hpp>            // SHA-256; the only door to libcrypto
#include <sealift/train/tensor_file.hpp>       // safetensors files: written whole and durable, or not at all
#include <sealift/train/optimizer_state.hpp>   // what an optimizer remembers, by name
#include <sealift/train/checkpoint_index.hpp>  // index.json: what was trained, how far, by which world
#include <sealift/train/stored_pieces.hpp>     // element ranges of tensors that lie in pieces in many files
#include <sealift/train/checkpoint_save.hpp>   // shards -> rank files -> index, at once or in the background
#include <sealift/train/checkpoint_load.hpp>   // into any world
#include <sealift/train/export.hpp>            // plain safetensors, out and in

// clang-format on
