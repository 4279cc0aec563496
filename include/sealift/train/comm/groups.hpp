// SPDX-License-Identifier: Apache-2.0
// The groups of ranks that a mesh makes of a world: along its axes, and as a unit of the model is spread over them.
// After `rendezvous`, which makes a `World`; every room above asks these groups for collectives.
// Ranks that do not arrive are named before any connection is tried, since Gloo would only time out.
#pragma once

#include <sealift/train/bodies.hpp>
#include <sealift/train/comm/connections.hpp>
#include <sealift/train/comm/observer.hpp>

namespace sealift::train {

/// The groups that a mesh makes of a world, as one rank sees them. They count into one report; a copy is the same
/// groups.
struct Groups {
  Mesh mesh;  ///< what is copied and sharded over these groups
  Collectives world, shard, replicate;
  std::shared_ptr<TrafficReport> traffic = std::make_shared<TrafficReport>();
  std::shared_ptr<RankWatch> watch;  ///< null when the rank is alone
  std::shared_ptr<detail::Connections> connections;
  std::shared_ptr<Observers> observers = std::make_shared<Observers>();  ///< of the units that use these groups
  at::Device device = at::kCPU;                                          ///< this rank's; flats are made there
  std::shared_ptr<const Mesh> world_mesh;                                ///< all axes of the world
  AxisNames sharded = {"shard"}, copied = {"replicate"};  ///< those of its axes along which `shard` and `replicate` lie

  /// The group of this rank over `axes` of the world's mesh: the ranks that differ from it along these only. Made once;
  /// collective over the world the first time.
  Collectives along(const AxisNames& axes) const;
  Collectives along(const char* axis) const { return along(AxisNames{axis}); }

  /// The groups of a unit that is sharded over some axes of the world's mesh and copied over others: an expert's, say.
  /// Along axes in neither, ranks have another unit in its place. Collective over the world the first time.
  Groups over(const AxisNames& sharded, const AxisNames& copied) const;

  /// The same without axis `name`: of what differs from rank to rank along it. Collective over the world the first
  /// time.
  Groups without(const std::string& name) const;

  /// The same ranks as replicas only, for a unit that is not sharded while others are.
  Groups replicated() const;

  /// The group of `size` neighbours within the shard group to which this rank belongs; made once. Collective over the
  /// world the first time.
  Collectives subgroup(std::int64_t size) const;

  /// Sets the optimizer step that messages of collectives name.
  void set_step(std::int64_t step) const;

  /// Tells all other ranks why this one ends; for the program's catch block.
  void report_failure(const std::string& text) const;
};

/// Connects the ranks of `world`, and makes World::device the current device of this thread; throws naming the ranks
/// that do not come. The groups along "shard" and "replicate" are made at once, others by `along`. Collective.
Groups make_groups(const World& world, Mesh mesh, const GroupOptions& options = {});

/// The groups of `policy` in a world that has one more axis, `name`: `ranks` neighbours of the ranks that share a copy
/// of the model, under ddp of the ranks that hold copies. To the policy they are as other ranks; modules that split
/// their parameters along the axis, as experts do, use it (split_along.hpp). Collective.
Groups make_groups(const World& world, const Policy& policy, const std::string& name, std::int64_t ranks,
                   const GroupOptions& options = {});

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/comm/groups_inl.hpp>
#endif
