// SPDX-License-Identifier: Apache-2.0
// The bodies of groups.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/comm/groups.hpp>

#include <array>

namespace sealift::train {

SEALIFT_BODY Collectives Groups::along(const AxisNames& axes) const {
  if (!connections) return {};
  const auto& all = *world_mesh;
  std::string name;
  for (const auto& axis : axes) {
    const auto known = all.names();
    TORCH_CHECK(std::find(known.begin(), known.end(), axis) != known.end(), "no axis '", axis, "' in the mesh ",
                all.text());
    if (all.size(axis) > 1) name += (name.empty() ? "" : "+") + axis;
  }
  const auto rank = connections->world.rank;
  return connections->group(name, all.index(all.except(axes), rank), all.members(axes, rank));
}

SEALIFT_BODY Groups Groups::over(const AxisNames& sharded, const AxisNames& copied) const {
  auto both = sharded;
  both.insert(both.end(), copied.begin(), copied.end());
  auto groups = *this;
  groups.world = along(both);
  groups.shard = along(sharded);
  groups.replicate = along(copied);
  groups.mesh = {groups.replicate.size(), groups.shard.size()};
  groups.sharded = sharded;
  groups.copied = copied;
  return groups;
}

SEALIFT_BODY Groups Groups::without(const std::string& name) const {
  auto rest = std::array{sharded, copied};
  for (auto& axes : rest) std::erase(axes, name);
  return over(rest[0], rest[1]);
}

SEALIFT_BODY Groups Groups::replicated() const {
  auto groups = *this;
  groups.mesh = {mesh.world_size(), 1};
  groups.shard = {};
  groups.replicate = world;
  groups.copied.insert(groups.copied.end(), sharded.begin(), sharded.end());
  groups.sharded = {};
  return groups;
}

SEALIFT_BODY Collectives Groups::subgroup(std::int64_t size) const {
  TORCH_CHECK(size >= 1 && mesh.shard % size == 0, "a subgroup of ", size, " in a shard group of ", mesh.shard,
              " ranks; the size must divide the group's");
  if (size == 1) return {};
  if (size == mesh.shard) return shard;
  const auto ranks = shard.members();
  const auto first = ranks.begin() + shard.rank() / size * size;
  return connections->group("subgroup" + std::to_string(size) + "of", *first, {first, first + size});
}

SEALIFT_BODY void Groups::set_step(std::int64_t step) const {
  if (watch) watch->issued().set_step(step);
}

SEALIFT_BODY void Groups::report_failure(const std::string& text) const {
  if (watch) watch->report_failure(text);
}

SEALIFT_BODY Groups make_groups(const World& world, Mesh mesh, const GroupOptions& options) {
  TORCH_CHECK(mesh.world_size() == world.size, "mesh ", mesh.text(), " in a world of ", world.size,
              " ranks; their product must be the world size");
  TORCH_CHECK(world.device.is_cpu() || world.device.has_index(), "World::device is ", world.device,
              " without a number; give each rank of a host its own, by LOCAL_RANK");
  use_device(world.device);
  Groups groups{.mesh = mesh};
  groups.device = world.device;
  if (world.size == 1) return groups;

  auto connections = std::make_shared<detail::Connections>();
  groups.connections = connections;
  groups.world_mesh = std::make_shared<const Mesh>(mesh);
  connections->world = world;
  connections->options = options;
  connections->traffic = groups.traffic;
  // This rank's n-th groups meet the others' n-th.
  const auto nth = world.store->add("groups/" + std::to_string(world.rank), 1);
  connections->generation = "groups" + std::to_string(nth);
  c10d::PrefixStore arrivals(connections->generation + "/came", world.store);
  arrivals.set(std::to_string(world.rank), "");
  std::vector<std::string> all;
  for (std::int64_t rank = 0; rank < world.size; ++rank) all.push_back(std::to_string(rank));
  try {
    arrivals.wait(all, world.timeout);
  } catch (const std::exception& error) {
    std::vector<std::int64_t> missing;
    for (std::int64_t rank = 0; rank < world.size; ++rank) {
      if (!arrivals.check({std::to_string(rank)})) missing.push_back(rank);
    }
    TORCH_CHECK(missing.empty(), name_ranks(missing), " of ", world.size, " did not come to make_groups within ",
                world.timeout.count(), " ms; see why in their output");
  }
  const auto watch_store = c10::make_intrusive<c10d::PrefixStore>(connections->generation + "/watch", world.store);
  connections->watch = groups.watch =
      RankWatch::start(watch_store, world.rank, world.size, world.timeout, world.device);
  groups.world = groups.along(mesh.names());
  if (mesh.shard > 1) groups.shard = groups.along("shard");
  if (mesh.replicate > 1) groups.replicate = groups.along("replicate");
  return groups;
}

SEALIFT_BODY Groups make_groups(const World& world, const Policy& policy, const std::string& name, std::int64_t ranks,
                                const GroupOptions& options) {
  auto mesh = make_mesh(policy, world.size);
  const bool copies = mesh.shard == 1;
  auto& divided = copies ? mesh.replicate : mesh.shard;
  TORCH_CHECK(ranks >= 1 && divided % ranks == 0, "axis '", name, "' of ", ranks, " ranks with parallel_method ",
              to_string(policy.method), ", where ", divided, " ranks ", copies ? "hold copies" : "share a copy",
              "; the axis must divide them");
  divided /= ranks;
  const std::vector<Axis> axes{{"replicate", mesh.replicate}, {"shard", mesh.shard}, {name, ranks}};
  const auto groups = make_groups(world, Mesh(axes), options);
  return copies ? groups.over({"shard"}, {"replicate", name}) : groups.over({"shard", name}, {"replicate"});
}

}  // namespace sealift::train
