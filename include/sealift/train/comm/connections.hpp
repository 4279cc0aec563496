// SPDX-License-Identifier: Apache-2.0
// What the groups of one world share, and how another group is made of it.
// Below `groups`, which says which ranks are a group.
// One set of Gloo's connections and, on devices, one communicator of their engine are made; every other communicator is
// split off that one, which NCCL does without a new round of introductions.
#pragma once

#include <sealift/train/bodies.hpp>
#include <sealift/train/comm/collectives.hpp>
#include <sealift/train/comm/engines.hpp>
#include <sealift/train/mesh.hpp>

// Not needed here, but by makers of a World.
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#ifdef USE_C10D_NCCL
#include <sealift/train/comm/nccl_backend.hpp>
#endif

#include <future>

namespace sealift::train {

/// This rank's place among all ranks, and where they find each other.
struct World {
  Store store;  ///< null when the rank is alone
  std::int64_t rank = 0;
  std::int64_t size = 1;
  std::string address = "127.0.0.1";  ///< what Gloo listens on here: a numeric address or a host name
  std::chrono::milliseconds timeout =
      std::chrono::minutes(5);   ///< of one collective: the longest wait for a rank that hangs
  at::Device device = at::kCPU;  ///< where collectives of tensors on it go over an engine of their own
  double processors = 0;  ///< of the host's, how many this rank may keep busy beside its other ranks; 0: not known
};

/// Makes what carries CPU tensors between `size` ranks, of which this is `rank`. As Gloo, works end by themselves.
using HostEngineFactory = std::function<c10::intrusive_ptr<c10d::Backend>(const Store&, int rank, int size)>;

struct GroupOptions {
  OrderCheck order_check = OrderCheck::NewOnly;
  EngineFactory device_engine = {};    ///< of tensors on World::device; unset: what is registered for its type, if any
  HostEngineFactory host_engine = {};  ///< unset: Gloo's; set where a job is rehearsed without its other ranks
};

namespace detail {

class Connections {
 public:
  World world;
  GroupOptions options;
  std::string generation;  ///< `make_groups` may be called again on the same store
  std::shared_ptr<TrafficReport> traffic;
  std::shared_ptr<RankWatch> watch;

  /// Whole meshes of Gloo's connections, and communicators, that this rank has made.
  std::int64_t gloo_made() const { return *gloo_made_; }
  std::int64_t engines_made() const { return engines_ ? static_cast<std::int64_t>(engines_->all.size()) : 0; }

  /// The group of the ranks `members` of the world, one of which is this rank; made once, the world's first. `axes`:
  /// what the groups of the other ranks are called too. Where there is an engine, collective over the world.
  Collectives group(const std::string& axes, std::int64_t number, std::vector<std::int64_t> members);

 private:
  bool is_world(const std::vector<std::int64_t>& members) const;

  Store store_of(const std::string& name) const;

  /// Gloo writes (gloo/transport/tcp/pair.cc, `Pair::write`) to connections that a peer may have closed: the signal
  /// that the system sends then would end the process without a word. Python ignores it; a program's own handler stays.
  static void ignore_closed_connections();

  static std::shared_ptr<GlooLines> connect_gloo(const World& world, const Store& store, std::int64_t rank,
                                                 std::size_t size, std::int64_t& count);

  /// One communicator serves gathers and reductions, as in FSDP2: NCCL runs the collectives of one in order whatever
  /// their streams, two on one device may wait for each other for ever when ranks start them in different orders, and
  /// each holds buffers for every peer.
  void connect_engine(Channel& channel, const std::string& axes);

  /// Runs `connect` on a thread of its own, since nothing ends it when another rank does not come; the watch names that
  /// rank. The thread is left behind then.
  c10::intrusive_ptr<c10d::Backend> watched(const std::string& axes,
                                            std::packaged_task<c10::intrusive_ptr<c10d::Backend>()> connect);

  std::shared_ptr<GlooLines> world_lines_;
  std::shared_ptr<OwnedEngines> engines_;  ///< the world's first
  std::size_t world_group_ = 0;
  std::map<std::vector<std::int64_t>, Collectives> made_;
  std::shared_ptr<std::int64_t> gloo_made_ = std::make_shared<std::int64_t>(0);
};

}  // namespace detail

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/comm/connections_inl.hpp>
#endif
