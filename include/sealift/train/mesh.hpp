// SPDX-License-Identifier: Apache-2.0
// Ranks as a grid with named axes: ranks that differ along one axis only are a group for what that axis does.
// It alone tells ddp (N,1), fsdp (1,N) and hsdp (R,S) apart; the rest of the core reads the grid, never the method.
// Pure arithmetic, so that a plan can be made for a world that does not exist yet.
#pragma once

#include <sealift/train/policy.hpp>

#include <algorithm>
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
  Mesh(std::int64_t replicate = 1, std::int64_t shard = 1)
      : Mesh(std::vector<Axis>{{"replicate", replicate}, {"shard", shard}}) {}

  /// Throws unless every axis has a name of its own and at least one rank.
  explicit Mesh(std::vector<Axis> axes) : axes_(std::move(axes)) {
    for (const auto& axis : axes_) {
      TORCH_CHECK(axis.size >= 1, "axis '", axis.name, "' of a mesh has ", axis.size, " ranks; expected at least 1");
      const auto same = [&](const Axis& other) { return other.name == axis.name; };
      TORCH_CHECK(!axis.name.empty() && std::count_if(axes_.begin(), axes_.end(), same) == 1,
                  "a mesh has two axes named '", axis.name, "', or one without a name; give each a name of its own");
    }
    replicate = size("replicate");
    shard = size("shard");
  }

  const std::vector<Axis>& axes() const { return axes_; }
  std::int64_t world_size() const { return size_of(names()); }
  std::int64_t shard_rank(std::int64_t rank) const { return coordinate("shard", rank); }  ///< which part `rank` holds
  std::int64_t replicate_rank(std::int64_t rank) const {
    return coordinate("replicate", rank);
  }  ///< which copy it is in

  /// Ranks along axis `name`; 1 without such an axis.
  std::int64_t size(const std::string& name) const {
    const auto axis = find(name);
    return axis == axes_.end() ? 1 : axis->size;
  }

  /// The place of `rank` along axis `name`; 0 without such an axis.
  std::int64_t coordinate(const std::string& name, std::int64_t rank) const {
    const auto axis = find(name);
    if (axis == axes_.end()) return 0;
    std::int64_t stride = 1;
    for (auto inner = axis + 1; inner != axes_.end(); ++inner) stride *= inner->size;
    return rank / stride % axis->size;
  }

  AxisNames names() const {
    AxisNames all;
    for (const auto& axis : axes_) all.push_back(axis.name);
    return all;
  }

  /// The axes that are not in `names`.
  AxisNames except(const AxisNames& names) const {
    AxisNames rest;
    for (const auto& axis : axes_) {
      if (std::find(names.begin(), names.end(), axis.name) == names.end()) rest.push_back(axis.name);
    }
    return rest;
  }

  /// Ranks in a group over the axes `names`.
  std::int64_t size_of(const AxisNames& names) const {
    std::int64_t product = 1;
    for (const auto& name : names) product *= size(name);
    return product;
  }

  /// The group of `rank` over the axes `names`: the ranks that differ from it along these only, ascending.
  std::vector<std::int64_t> members(const AxisNames& names, std::int64_t rank) const {
    const auto fixed = except(names);
    std::vector<std::int64_t> ranks;
    for (std::int64_t other = 0; other < world_size(); ++other) {
      if (index(fixed, other) == index(fixed, rank)) ranks.push_back(other);
    }
    return ranks;
  }

  /// The number of `rank` in its group over the axes `names`, counted along the last of the mesh's axes first.
  std::int64_t index(const AxisNames& names, std::int64_t rank) const {
    std::int64_t number = 0;
    for (const auto& axis : axes_) {
      if (std::find(names.begin(), names.end(), axis.name) == names.end()) continue;
      number = number * axis.size + coordinate(axis.name, rank);
    }
    return number;
  }

  /// For people: "replicate 2 x shard 4".
  std::string text() const {
    std::string text;
    for (const auto& axis : axes_) text += (text.empty() ? "" : " x ") + axis.name + " " + std::to_string(axis.size);
    return text;
  }

  bool operator==(const Mesh& other) const { return axes_ == other.axes_; }

 private:
  std::vector<Axis>::const_iterator find(const std::string& name) const {
    return std::find_if(axes_.begin(), axes_.end(), [&](const Axis& axis) { return axis.name == name; });
  }

  std::vector<Axis> axes_;
};

/// The mesh that `policy` asks for in a world of `world_size` ranks; throws when the two do not fit.
inline Mesh make_mesh(const Policy& policy, std::int64_t world_size) {
  TORCH_CHECK(world_size >= 1, "world size is ", world_size, "; expected at least 1");
  TORCH_CHECK(policy.shard_size == 0 || policy.method == ParallelMethod::Hsdp, "shard_size is ", policy.shard_size,
              " with parallel_method ", to_string(policy.method), "; it belongs to hsdp only");
  switch (policy.method) {
    case ParallelMethod::None:
      TORCH_CHECK(world_size == 1, "parallel_method none in a world of ", world_size,
                  " ranks would train as many models; use ddp, fsdp or hsdp");
      return {1, 1};
    case ParallelMethod::Ddp:
      return {world_size, 1};
    case ParallelMethod::Fsdp:
      return {1, world_size};
    case ParallelMethod::Hsdp:
      TORCH_CHECK(policy.shard_size >= 1 && world_size % policy.shard_size == 0, "hsdp: shard_size is ",
                  policy.shard_size, " in a world of ", world_size, " ranks; it must divide the world");
      return {world_size / policy.shard_size, policy.shard_size};
  }
  TORCH_CHECK(false, "unknown parallel method");
}

}  // namespace sealift::train
