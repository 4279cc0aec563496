// SPDX-License-Identifier: Apache-2.0
// Ranks as a grid with named axes: ranks that differ along one axis only are a group for what that axis does.
// It alone tells ddp (N,1), fsdp (1,N) and hsdp (R,S) apart; the rest of the core reads the grid, never the method.
// Pure arithmetic, so that a plan can be made for a world that does not exist yet.
#pragma once

#include <sealift/train/bodies.hpp>
#include <sealift/train/policy.hpp>

#include <string>
#include <utility>
#include <vector>

namespace sealift::train {

/// One axis of a mesh: its name, and how many ranks lie along it.
struct Axis {
  std::string name;
  std::int64_t size = 1;

  bool operator==(const Axis&) const = default;
};

/// Names of axes; their order says nothing.
using AxisNames = std::vector<std::string>;

/// A world of as many ranks as the product of its axes. Ranks count along the last axis first, so that neighbours along
/// it are the likeliest to share a host.
class Mesh {
 public:
  std::int64_t replicate = 1;  ///< ranks along the axis of this name, which hold copies
  std::int64_t shard = 1;      ///< ... which hold parts

  /// The two axes that the core itself knows.
  Mesh(std::int64_t replicate = 1, std::int64_t shard = 1);

  /// Throws unless every axis has a name of its own and at least one rank.
  explicit Mesh(std::vector<Axis> axes);

  const std::vector<Axis>& axes() const { return axes_; }
  std::int64_t world_size() const { return size_of(names()); }
  std::int64_t shard_rank(std::int64_t rank) const { return coordinate("shard", rank); }  ///< which part `rank` holds
  std::int64_t replicate_rank(std::int64_t rank) const;                                   ///< which copy it is in

  /// Ranks along axis `name`; 1 without such an axis.
  std::int64_t size(const std::string& name) const;

  /// The place of `rank` along axis `name`; 0 without such an axis.
  std::int64_t coordinate(const std::string& name, std::int64_t rank) const;

  AxisNames names() const;

  /// The axes that are not in `names`.
  AxisNames except(const AxisNames& names) const;

  /// Ranks in a group over the axes `names`.
  std::int64_t size_of(const AxisNames& names) const;

  /// The group of `rank` over the axes `names`: the ranks that differ from it along these only, ascending.
  std::vector<std::int64_t> members(const AxisNames& names, std::int64_t rank) const;

  /// The number of `rank` in its group over the axes `names`, counted along the last of the mesh's axes first.
  std::int64_t index(const AxisNames& names, std::int64_t rank) const;

  /// For people: "replicate 2 x shard 4".
  std::string text() const;

  bool operator==(const Mesh& other) const { return axes_ == other.axes_; }

 private:
  std::vector<Axis>::const_iterator find(const std::string& name) const;

  std::vector<Axis> axes_;
};

/// The mesh that `policy` asks for in a world of `world_size` ranks; throws when the two do not fit.
Mesh make_mesh(const Policy& policy, std::int64_t world_size);

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/mesh_inl.hpp>
#endif
