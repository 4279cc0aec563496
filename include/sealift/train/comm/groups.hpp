// SPDX-License-Identifier: Apache-2.0
// The groups of ranks that a mesh makes of a world, with one set of connections per axis that needs its own.
// After `rendezvous`, which makes a `World`; every room above asks these groups for collectives.
// Ranks that do not arrive are named before any connection is tried, since Gloo would only time out.
#pragma once

#include <sealift/train/comm/collectives.hpp>
#include <sealift/train/mesh.hpp>

#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#ifdef USE_C10D_NCCL
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#endif

namespace sealift::train {

/// This rank's place among all ranks, and where they find each other.
struct World {
  Store store;  ///< null when the rank is alone
  std::int64_t rank = 0;
  std::int64_t size = 1;
  std::string address = "127.0.0.1";  ///< what Gloo listens on here: a numeric address or a host name
  std::chrono::milliseconds timeout =
      std::chrono::minutes(5);   ///< of one collective: the longest wait for a rank that hangs
  at::Device device = at::kCPU;  ///< with a CUDA device, collectives of its tensors go over NCCL
};

namespace detail {

/// What the groups of one world share; makes further groups.
struct Connections {
  World world;
  std::string generation;  ///< `make_groups` may be called again on the same store
  OrderCheck order_check = OrderCheck::NewOnly;
  std::shared_ptr<TrafficReport> traffic;
  std::shared_ptr<RankWatch> watch;
  std::map<std::int64_t, Collectives> subgroups;  ///< of the shard group, by size

  /// Connects the ranks `members` of the world, of which this rank is number `rank`. Collective over them.
  Collectives connect(const std::string& name, std::int64_t rank, std::vector<std::int64_t> members) const {
    const auto size = static_cast<int>(members.size());
    if (size == 1) return {};
    auto channel = std::make_shared<Channel>();
    channel->watch = watch;
    channel->traffic = traffic;
    channel->order_check = order_check;
    auto options = c10d::ProcessGroupGloo::Options::create(world.timeout);
    // Binding to a given address keeps Gloo from resolving the host's own name, which may fail on an isolated host.
    options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(world.address, false));
    const auto store = [&](const std::string& engine) {
      return c10::make_intrusive<c10d::PrefixStore>(generation + "/" + name + "/" + engine, world.store);
    };
    channel->gloo = c10::make_intrusive<TaggedGloo>(store("gloo"), static_cast<int>(rank), size, std::move(options));
    // The watch gives up after the time-out, with a better message; Gloo's own time-out is for when the watch fails.
    channel->gloo->setTimeout(world.timeout * 2 + std::chrono::seconds(1));
    if (world.device.is_cuda()) {
#ifdef USE_C10D_NCCL
      const auto nccl = [&](const std::string& engine, bool high_priority) -> c10::intrusive_ptr<c10d::Backend> {
        auto nccl_options = c10d::ProcessGroupNCCL::Options::create(high_priority);
        nccl_options->timeout = world.timeout;
        auto backend = c10::make_intrusive<c10d::ProcessGroupNCCL>(store(engine), static_cast<int>(rank), size,
                                                                   std::move(nccl_options));
        backend->setBoundDeviceId(world.device);
        return backend;
      };
      channel->gathers = nccl("gathers", false);
      channel->reductions = nccl("reductions", true);
#else
      TORCH_CHECK(false, "World::device is ", world.device,
                  " but this program was built without NCCL; link sealift::train_cuda");
#endif
    }
    channel->check_group = watch->issued().add_group(name + " check", members);
    channel->group = watch->issued().add_group(name, std::move(members));
    return Collectives(std::move(channel));
  }
};

}  // namespace detail

/// The groups that a mesh makes of a world, as one rank sees them. They count into one report; a copy is the same
/// groups.
struct Groups {
  Mesh mesh;
  Collectives world, shard, replicate;
  std::shared_ptr<TrafficReport> traffic = std::make_shared<TrafficReport>();
  std::shared_ptr<RankWatch> watch;  ///< null when the rank is alone
  std::shared_ptr<detail::Connections> connections;

  /// The same ranks as replicas only, for a unit that is not sharded while others are.
  Groups replicated() const {
    auto groups = *this;
    groups.mesh = {mesh.world_size(), 1};
    groups.shard = {};
    groups.replicate = world;
    return groups;
  }

  /// The group of `size` neighbours within the shard group to which this rank belongs; made once. Collective over the
  /// shard group the first time.
  Collectives subgroup(std::int64_t size) const {
    TORCH_CHECK(size >= 1 && mesh.shard % size == 0, "a subgroup of ", size, " in a shard group of ", mesh.shard,
                " ranks; the size must divide the group's");
    if (size == 1) return {};
    if (size == mesh.shard) return shard;
    auto& made = connections->subgroups;
    if (const auto known = made.find(size); known != made.end()) return known->second;
    const auto first = connections->world.rank - shard.rank() % size;
    std::vector<std::int64_t> members(static_cast<std::size_t>(size));
    for (std::int64_t i = 0; i < size; ++i) members[static_cast<std::size_t>(i)] = first + i;
    return made[size] = connections->connect("subgroup" + std::to_string(size) + "of" + std::to_string(first),
                                             shard.rank() % size, std::move(members));
  }

  /// Sets the optimizer step that messages of collectives name.
  void set_step(std::int64_t step) const {
    if (watch) watch->issued().set_step(step);
  }

  /// Tells all other ranks why this one ends; for the program's catch block.
  void report_failure(const std::string& text) const {
    if (watch) watch->report_failure(text);
  }
};

struct GroupOptions {
  OrderCheck order_check = OrderCheck::NewOnly;
};

/// Connects the ranks of `world`, once for all of them and once per axis of `mesh` that needs its own group; throws
/// naming the ranks that do not come. Collective.
inline Groups make_groups(const World& world, Mesh mesh, const GroupOptions& options = {}) {
  TORCH_CHECK(mesh.world_size() == world.size, "mesh ", mesh.replicate, "x", mesh.shard, " in a world of ", world.size,
              " ranks; their product must be the world size");
  Groups groups{.mesh = mesh};
  if (world.size == 1) return groups;

  auto connections = std::make_shared<detail::Connections>();
  groups.connections = connections;
  connections->world = world;
  connections->order_check = options.order_check;
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
  connections->watch = groups.watch = RankWatch::start(watch_store, world.rank, world.size, world.timeout);

  const auto ranks = [](std::int64_t first, std::int64_t step, std::int64_t count) {
    std::vector<std::int64_t> members;
    for (std::int64_t i = 0; i < count; ++i) members.push_back(first + i * step);
    return members;
  };
  const auto shard_rank = mesh.shard_rank(world.rank);
  const auto replicate_rank = mesh.replicate_rank(world.rank);
  groups.world = connections->connect("world", world.rank, ranks(0, 1, world.size));
  if (mesh.shard == world.size) {
    groups.shard = groups.world;
  } else if (mesh.replicate == world.size) {
    groups.replicate = groups.world;
  } else {
    groups.shard = connections->connect("shard" + std::to_string(replicate_rank), shard_rank,
                                        ranks(replicate_rank * mesh.shard, 1, mesh.shard));
    groups.replicate = connections->connect("replicate" + std::to_string(shard_rank), replicate_rank,
                                            ranks(shard_rank, mesh.shard, mesh.replicate));
  }
  return groups;
}

}  // namespace sealift::train
