// SPDX-License-Identifier: Apache-2.0
// The bodies of mesh.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/mesh.hpp>

#include <algorithm>

namespace sealift::train {

SEALIFT_BODY Mesh::Mesh(std::int64_t replicate, std::int64_t shard)
    : Mesh(std::vector<Axis>{{"replicate", replicate}, {"shard", shard}}) {}

SEALIFT_BODY Mesh::Mesh(std::vector<Axis> axes) : axes_(std::move(axes)) {
  for (const auto& axis : axes_) {
    TORCH_CHECK(axis.size >= 1, "axis '", axis.name, "' of a mesh has ", axis.size, " ranks; expected at least 1");
    const auto same = [&](const Axis& other) { return other.name == axis.name; };
    TORCH_CHECK(!axis.name.empty() && std::count_if(axes_.begin(), axes_.end(), same) == 1,
                "a mesh has two axes named '", axis.name, "', or one without a name; give each a name of its own");
  }
  replicate = size("replicate");
  shard = size("shard");
}

SEALIFT_BODY std::int64_t Mesh::replicate_rank(std::int64_t rank) const {
  return coordinate("replicate", rank);
}

SEALIFT_BODY std::int64_t Mesh::size(const std::string& name) const {
  const auto axis = find(name);
  return axis == axes_.end() ? 1 : axis->size;
}

SEALIFT_BODY std::int64_t Mesh::coordinate(const std::string& name, std::int64_t rank) const {
  const auto axis = find(name);
  if (axis == axes_.end()) return 0;
  std::int64_t stride = 1;
  for (auto inner = axis + 1; inner != axes_.end(); ++inner) stride *= inner->size;
  return rank / stride % axis->size;
}

SEALIFT_BODY AxisNames Mesh::names() const {
  AxisNames all;
  for (const auto& axis : axes_) all.push_back(axis.name);
  return all;
}

SEALIFT_BODY AxisNames Mesh::except(const AxisNames& names) const {
  AxisNames rest;
  for (const auto& axis : axes_) {
    if (std::find(names.begin(), names.end(), axis.name) == names.end()) rest.push_back(axis.name);
  }
  return rest;
}

SEALIFT_BODY std::int64_t Mesh::size_of(const AxisNames& names) const {
  std::int64_t product = 1;
  for (const auto& name : names) product *= size(name);
  return product;
}

SEALIFT_BODY std::vector<std::int64_t> Mesh::members(const AxisNames& names, std::int64_t rank) const {
  const auto fixed = except(names);
  std::vector<std::int64_t> ranks;
  for (std::int64_t other = 0; other < world_size(); ++other) {
    if (index(fixed, other) == index(fixed, rank)) ranks.push_back(other);
  }
  return ranks;
}

SEALIFT_BODY std::int64_t Mesh::index(const AxisNames& names, std::int64_t rank) const {
  std::int64_t number = 0;
  for (const auto& axis : axes_) {
    if (std::find(names.begin(), names.end(), axis.name) == names.end()) continue;
    number = number * axis.size + coordinate(axis.name, rank);
  }
  return number;
}

SEALIFT_BODY std::string Mesh::text() const {
  std::string text;
  for (const auto& axis : axes_) text += (text.empty() ? "" : " x ") + axis.name + " " + std::to_string(axis.size);
  return text;
}

SEALIFT_BODY std::vector<Axis>::const_iterator Mesh::find(const std::string& name) const {
  return std::find_if(axes_.begin(), axes_.end(), [&](const Axis& axis) { return axis.name == name; });
}

SEALIFT_BODY Mesh make_mesh(const Policy& policy, std::int64_t world_size) {
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
