// SPDX-License-Identifier: Apache-2.0
// The second unit of the link test: every header again, beside the other tests' includes of them.
// A function that is not inline fails the link here, not at a user's.
// Order is against the umbrella's, so a header that leans on an earlier one shows.
// clang-format off
#include <sealift/train/export.hpp>
#include <sealift/train/checkpoint_load.hpp>
#include <sealift/train/checkpoint_save.hpp>
#include <sealift/train/stored_pieces.hpp>
#include <sealift/train/checkpoint_index.hpp>
#include <sealift/train/optimizer_state.hpp>
#include <sealift/train/tensor_file.hpp>
#include <sealift/train/digest.hpp>
#include <sealift/train/rendezvous.hpp>
#include <sealift/train/address.hpp>
#include <sealift/train/launch.hpp>
#include <sealift/train/launch_variables.hpp>
#include <sealift/train/recompute.hpp>
#include <sealift/train/adamw.hpp>
#include <sealift/train/scaler.hpp>
#include <sealift/train/clip.hpp>
#include <sealift/train/parallelize.hpp>
#include <sealift/train/parallel.hpp>
#include <sealift/train/unit_plan.hpp>
#include <sealift/train/shardable.hpp>
#include <sealift/train/unit_passes.hpp>
#include <sealift/train/unit_graph.hpp>
#include <sealift/train/tensor_walk.hpp>
#include <sealift/train/unit.hpp>
#include <sealift/train/call_order.hpp>
#include <sealift/train/reducer.hpp>
#include <sealift/train/flat_gradient.hpp>
#include <sealift/train/flat_param.hpp>
#include <sealift/train/buffer_pool.hpp>
#include <sealift/train/broadcast.hpp>
#include <sealift/train/groups.hpp>
#include <sealift/train/collectives.hpp>
#include <sealift/train/channel.hpp>
#include <sealift/train/rank_watch.hpp>
#include <sealift/train/collective_label.hpp>
#include <sealift/train/flat_layout.hpp>
#include <sealift/train/mesh.hpp>
#include <sealift/train/policy.hpp>
// clang-format on

#include <doctest/doctest.h>

TEST_CASE("all headers of the training core are in this program twice") {
  CHECK(sealift::train::parse_launch([](const char*) -> const char* { return nullptr; }).world_size == 1);
}
