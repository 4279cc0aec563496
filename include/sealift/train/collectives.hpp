// SPDX-License-Identifier: Apache-2.0
// The only door to c10d: collectives over flat buffers, counted, each returning a ticket to wait on.
// Sees tensors and groups, never parameters; `flat_param` above decides what is sent and when.
// The engines are c10d's own (Gloo here): what the field runs is what is trusted, so no transport is written in this
// project.
#pragma once

#include <sealift/train/flat_layout.hpp>

#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

namespace sealift::train {

using Store = c10::intrusive_ptr<c10d::Store>;

/// Calls and bytes of one kind of collective on this rank.
struct Traffic {
  std::int64_t calls = 0;
  /// What a ring sends per rank: f * size for gather and reduce-scatter, 2f * size for all-reduce, f = (W - 1) / W.
  /// Gloo has no native reduce-scatter and sends twice this for one.
  std::int64_t bytes = 0;

  bool operator==(const Traffic&) const = default;
};

/// What a rank has sent since it started counting.
struct TrafficReport {
  Traffic all_gather, reduce_scatter, all_reduce, broadcast;

  bool operator==(const TrafficReport&) const = default;
};

/// A collective that was issued; its buffers belong to it until `wait` returns.
class Ticket {
 public:
  Ticket() = default;
  explicit Ticket(c10::intrusive_ptr<c10d::Work> work) : work_(std::move(work)) {}

  /// Blocks until the collective is done and rethrows its error; does nothing the second time.
  void wait() {
    if (auto work = std::exchange(work_, nullptr)) work->wait();
  }

 private:
  c10::intrusive_ptr<c10d::Work> work_;
};

/// One group of ranks. A group of one does nothing and counts nothing.
class Collectives {
 public:
  Collectives(c10::intrusive_ptr<c10d::Backend> backend, std::shared_ptr<TrafficReport> traffic)
      : backend_(std::move(backend)), traffic_(std::move(traffic)) {}

  /// A group of one rank.
  Collectives() = default;

  std::int64_t rank() const { return backend_ ? backend_->getRank() : 0; }
  std::int64_t size() const { return backend_ ? backend_->getSize() : 1; }

  /// full [W * n] = every rank's shard [n], in rank order.
  Ticket all_gather(at::Tensor full, at::Tensor shard) {
    if (size() == 1) return {};
    count(traffic_->all_gather, full, 1);
    return Ticket(backend_->_allgather_base(full, shard));
  }

  /// shard [n] = this rank's part of the sum of every rank's full [W * n].
  Ticket reduce_scatter(at::Tensor shard, at::Tensor full) {
    if (size() == 1) return {};
    count(traffic_->reduce_scatter, full, 1);
    return Ticket(backend_->_reduce_scatter_base(shard, full));
  }

  /// tensor = the sum of every rank's tensor.
  Ticket all_reduce(at::Tensor tensor) {
    if (size() == 1) return {};
    count(traffic_->all_reduce, tensor, 2);
    std::vector<at::Tensor> tensors{std::move(tensor)};
    return Ticket(backend_->allreduce(tensors));
  }

  /// tensor = rank 0's tensor.
  Ticket broadcast(at::Tensor tensor) {
    if (size() == 1) return {};
    count(traffic_->broadcast, tensor, 1);
    std::vector<at::Tensor> tensors{std::move(tensor)};
    return Ticket(backend_->broadcast(tensors));
  }

  /// Returns when every rank of the group has called it.
  void barrier() {
    if (size() > 1) backend_->barrier()->wait();
  }

 private:
  void count(Traffic& traffic, const at::Tensor& whole, std::int64_t rounds) {
    traffic.calls += 1;
    traffic.bytes += rounds * static_cast<std::int64_t>(whole.nbytes()) * (size() - 1) / size();
  }

  c10::intrusive_ptr<c10d::Backend> backend_;
  std::shared_ptr<TrafficReport> traffic_;
};

/// This rank's place among all ranks, and where they find each other.
struct World {
  Store store;  ///< null when the rank is alone
  std::int64_t rank = 0;
  std::int64_t size = 1;
  std::string address = "127.0.0.1";  ///< what Gloo listens on here: a numeric address or a host name
  std::chrono::milliseconds timeout =
      std::chrono::minutes(5);  ///< of one collective: how long a hung rank is waited for
};

/// The groups that a mesh makes of a world, as one rank sees them; they count into one report.
struct Groups {
  Mesh mesh;
  Collectives world, shard, replicate;
  std::shared_ptr<TrafficReport> traffic = std::make_shared<TrafficReport>();
};

/// Connects the ranks of `world` over Gloo, once for all of them and once per axis of `mesh` that needs its own group.
inline Groups make_groups(const World& world, Mesh mesh) {
  TORCH_CHECK(mesh.world_size() == world.size, "mesh ", mesh.replicate, "x", mesh.shard, " in a world of ", world.size,
              " ranks; their product must be the world size");
  Groups groups{.mesh = mesh};
  if (world.size == 1) return groups;

  const auto connect = [&](const std::string& name, std::int64_t rank, std::int64_t size) {
    auto options = c10d::ProcessGroupGloo::Options::create(world.timeout);
    // Binding to a named address keeps Gloo from resolving the host's own name, which an isolated host may not be able
    // to.
    options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(world.address, false));
    auto store = c10::make_intrusive<c10d::PrefixStore>(name, world.store);
    auto backend = c10::make_intrusive<c10d::ProcessGroupGloo>(store, static_cast<int>(rank), static_cast<int>(size),
                                                               std::move(options));
    return Collectives(std::move(backend), groups.traffic);
  };
  const auto shard_rank = mesh.shard_rank(world.rank);
  const auto replicate_rank = mesh.replicate_rank(world.rank);
  groups.world = connect("world", world.rank, world.size);
  if (mesh.shard == world.size) {
    groups.shard = groups.world;
  } else if (mesh.replicate == world.size) {
    groups.replicate = groups.world;
  } else {
    groups.shard = connect("shard" + std::to_string(replicate_rank), shard_rank, mesh.shard);
    groups.replicate = connect("replicate" + std::to_string(shard_rank), replicate_rank, mesh.replicate);
  }
  return groups;
}

}  // namespace sealift::train
