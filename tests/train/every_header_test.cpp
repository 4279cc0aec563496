// SPDX-License-Identifier: Apache-2.0
// The second translation unit of the link test: every header again, beside the other tests' includes of them.
// A function that is not inline fails to link here, not in a user's program.
// As a program gets them that has no compiled core, though the other tests are linked to one.
// The order is the reverse of the umbrella's, so that a header that lacks an include fails to compile.
// clang-format off
#undef SEALIFT_TRAIN_COMPILED
#include <sealift/train/checkpoint/export.hpp>
#include <sealift/train/checkpoint/safetensors_source.hpp>
#include <sealift/train/checkpoint/checkpoint_load.hpp>
#include <sealift/train/checkpoint/checkpoint_save.hpp>
#include <sealift/train/checkpoint/stored_pieces.hpp>
#include <sealift/train/checkpoint/checkpoint_index.hpp>
#include <sealift/train/checkpoint/optimizer_state.hpp>
#include <sealift/train/checkpoint/tensor_file.hpp>
#include <sealift/train/checkpoint/digest.hpp>
#include <sealift/train/step/timeline.hpp>
#include <sealift/train/step/step_times.hpp>
#include <sealift/train/step/profiler_ranges.hpp>
#include <sealift/train/step/recompute.hpp>
#include <sealift/train/step/replay_state.hpp>
#include <sealift/train/step/join.hpp>
#include <sealift/train/step/adamw.hpp>
#include <sealift/train/step/visit_device.hpp>
#include <sealift/train/step/scaler.hpp>
#include <sealift/train/step/clip.hpp>
#include <sealift/train/parallelize.hpp>
#include <sealift/train/parallel.hpp>
#include <sealift/train/split_along.hpp>
#include <sealift/train/keep_choice.hpp>
#include <sealift/train/first_values.hpp>
#include <sealift/train/unit_plan.hpp>
#include <sealift/train/unit_choice.hpp>
#include <sealift/train/shardable.hpp>
#include <sealift/train/unit/unit_graph.hpp>
#include <sealift/train/unit/tensor_walk.hpp>
#include <sealift/train/unit/unit.hpp>
#include <sealift/train/unit/call_order.hpp>
#include <sealift/train/flat/reducer.hpp>
#include <sealift/train/flat/buckets.hpp>
#include <sealift/train/flat/flat_gradient.hpp>
#include <sealift/train/flat/leaf_gradients.hpp>
#include <sealift/train/flat/host_copy.hpp>
#include <sealift/train/flat/gradient_mark.hpp>
#include <sealift/train/flat/power_sgd_transport.hpp>
#include <sealift/train/flat/power_sgd.hpp>
#include <sealift/train/flat/transport.hpp>
#include <sealift/train/flat/flat_param.hpp>
#include <sealift/train/flat/side_streams.hpp>
#include <sealift/train/flat/stored_codec.hpp>
#include <sealift/train/flat/nf4_codec.hpp>
#include <sealift/train/flat/nf4_decoder.hpp>
#include <sealift/train/flat/nf4.hpp>
#include <sealift/train/flat/stored_shard.hpp>
#include <sealift/train/flat/guard.hpp>
#include <sealift/train/flat/codec.hpp>
#include <sealift/train/flat/fill_shard.hpp>
#include <sealift/train/flat/source.hpp>
#include <sealift/train/flat/meta_device.hpp>
#include <sealift/train/flat/buffer_pool.hpp>
#include <sealift/train/flat/flat_layout.hpp>
#include <sealift/train/launch/rendezvous.hpp>
#include <sealift/train/launch/host_offer.hpp>
#include <sealift/train/launch/host_share.hpp>
#include <sealift/train/launch/control_groups.hpp>
#include <sealift/train/launch/address.hpp>
#include <sealift/train/launch/launch.hpp>
#include <sealift/train/launch/foreign_launchers.hpp>
#include <sealift/train/launch/launch_variables.hpp>
#include <sealift/train/comm/broadcast.hpp>
#include <sealift/train/comm/groups.hpp>
#include <sealift/train/comm/connections.hpp>
#include <sealift/train/comm/nccl_backend.hpp>
#include <sealift/train/comm/collectives.hpp>
#include <sealift/train/comm/label_check.hpp>
#include <sealift/train/comm/rank_order_sum.hpp>
#include <sealift/train/comm/in_flight.hpp>
#include <sealift/train/comm/channel.hpp>
#include <sealift/train/comm/rank_watch.hpp>
#include <sealift/train/comm/engines.hpp>
#include <sealift/train/comm/watch_store.hpp>
#include <sealift/train/comm/issued_collectives.hpp>
#include <sealift/train/comm/rank_report.hpp>
#include <sealift/train/comm/device_works.hpp>
#include <sealift/train/comm/device.hpp>
#include <sealift/train/comm/collective_label.hpp>
#include <sealift/train/comm/observer.hpp>
#include <sealift/train/mesh.hpp>
#include <sealift/train/names.hpp>
#include <sealift/train/policy.hpp>
#include <sealift/train/compression.hpp>
#include <sealift/train/wrap.hpp>
#include <sealift/train/precision.hpp>
// clang-format on

#include <doctest/doctest.h>

TEST_CASE("all headers of the training core are in this program twice") {
  CHECK(sealift::train::parse_launch([](const char*) -> const char* { return nullptr; }).world_size == 1);
}
