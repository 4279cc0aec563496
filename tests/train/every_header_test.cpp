// SPDX-License-Identifier: Apache-2.0
// The second translation unit of the link test: every header again, beside the other tests' includes of them.
// A function that is not inline fails to link here, not in a user's program.
// The order is the reverse of the umbrella's, so that a header that lacks an include fails to compile.
// clang-format off
#include <sealift/train/checkpoint/export.hpp>
#include <sealift/train/checkpoint/checkpoint_load.hpp>
#include <sealift/train/checkpoint/checkpoint_save.hpp>
#include <sealift/train/checkpoint/stored_pieces.hpp>
#include <sealift/train/checkpoint/checkpoint_index.hpp>
#include <sealift/train/checkpoint/optimizer_state.hpp>
#include <sealift/train/checkpoint/tensor_file.hpp>
#include <sealift/train/checkpoint/digest.hpp>
#include <sealift/train/step/recompute.hpp>
#include <sealift/train/step/adamw.hpp>
#include <sealift/train/step/scaler.hpp>
#include <sealift/train/step/clip.hpp>
#include <sealift/train/parallelize.hpp>
#include <sealift/train/parallel.hpp>
#include <sealift/train/unit_plan.hpp>
#include <sealift/train/shardable.hpp>
#include <sealift/train/unit/unit_passes.hpp>
#include <sealift/train/unit/unit_graph.hpp>
#include <sealift/train/unit/tensor_walk.hpp>
#include <sealift/train/unit/unit.hpp>
#include <sealift/train/unit/call_order.hpp>
#include <sealift/train/flat/reducer.hpp>
#include <sealift/train/flat/buckets.hpp>
#include <sealift/train/flat/flat_gradient.hpp>
#include <sealift/train/flat/flat_param.hpp>
#include <sealift/train/flat/buffer_pool.hpp>
#include <sealift/train/flat/flat_layout.hpp>
#include <sealift/train/launch/rendezvous.hpp>
#include <sealift/train/launch/address.hpp>
#include <sealift/train/launch/launch.hpp>
#include <sealift/train/launch/launch_variables.hpp>
#include <sealift/train/comm/broadcast.hpp>
#include <sealift/train/comm/groups.hpp>
#include <sealift/train/comm/collectives.hpp>
#include <sealift/train/comm/channel.hpp>
#include <sealift/train/comm/rank_watch.hpp>
#include <sealift/train/comm/watch_store.hpp>
#include <sealift/train/comm/issued_collectives.hpp>
#include <sealift/train/comm/collective_label.hpp>
#include <sealift/train/mesh.hpp>
#include <sealift/train/policy.hpp>
// clang-format on

#include <doctest/doctest.h>

TEST_CASE("all headers of the training core are in this program twice") {
  CHECK(sealift::train::parse_launch([](const char*) -> const char* { return nullptr; }).world_size == 1);
}
