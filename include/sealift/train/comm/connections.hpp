// SPDX-License-Identifier: Apache-2.0
// What the groups of one world share, and how another group is made of it.
// Below `groups`, which says which ranks are a group.
// One set of Gloo's connections and, on GPUs, one communicator of NCCL's are made; every other communicator is split
// off that one, which NCCL does without a new round of introductions.
#pragma once

#include <sealift/train/comm/collectives.hpp>
#include <sealift/train/comm/nccl.hpp>
#include <sealift/train/mesh.hpp>

#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#ifdef USE_C10D_NCCL
#include <sealift/train/comm/nccl_backend.hpp>
#endif

#include <csignal>
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
  at::Device device = at::kCPU;  ///< with a CUDA device, collectives of its tensors go over NCCL
};

/// Makes what carries CPU tensors between `size` ranks, of which this is `rank`. As Gloo, works end by themselves.
using HostEngineFactory = std::function<c10::intrusive_ptr<c10d::Backend>(const Store&, int rank, int size)>;

struct GroupOptions {
  OrderCheck order_check = OrderCheck::NewOnly;
  NcclFactory nccl = {};  ///< makes the engine of tensors on World::device; unset: NCCL's for CUDA, none for the CPU
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
  Collectives group(const std::string& axes, std::int64_t number, std::vector<std::int64_t> members) {
    if (members.size() == 1) return {};
    if (const auto known = made_.find(members); known != made_.end()) return known->second;
    const auto own = std::find(members.begin(), members.end(), world.rank) - members.begin();
    auto channel = std::make_shared<Channel>();
    channel->name = is_world(members) ? "world" : axes + std::to_string(number);
    channel->watch = watch;
    channel->traffic = traffic;
    channel->order_check = options.order_check;
    channel->own = own;
    channel->members = members;
    channel->device = world.device;
    channel->connect = [this_world = world, count = gloo_made_, store = store_of(channel->name + "/gloo"), own,
                        size = members.size(), other = options.host_engine] {
      if (!other) return connect_gloo(this_world, store, own, size, *count);
      return std::make_shared<GlooLines>(other(store, static_cast<int>(own), static_cast<int>(size)));
    };
    if (!world_lines_) world_lines_ = channel->lines = channel->connect();
    channel->world = world_lines_;
    channel->check_group = watch->issued().add_group(channel->name + " check", members);
    channel->group = watch->issued().add_group(channel->name, members);
    if (is_world(members)) world_group_ = channel->group;
    connect_engine(*channel, axes);
    return made_[std::move(members)] = Collectives(std::move(channel));
  }

 private:
  bool is_world(const std::vector<std::int64_t>& members) const {
    return static_cast<std::int64_t>(members.size()) == world.size;
  }

  Store store_of(const std::string& name) const {
    return c10::make_intrusive<c10d::PrefixStore>(generation + "/" + name, world.store);
  }

  /// Gloo writes (gloo/transport/tcp/pair.cc, `Pair::write`) to connections that a peer may have closed: the signal
  /// that the system sends then would end the process without a word. Python ignores it; a program's own handler stays.
  static void ignore_closed_connections() {
    struct sigaction action {};
    if (sigaction(SIGPIPE, nullptr, &action) == 0 && (action.sa_flags & SA_SIGINFO) == 0 &&
        action.sa_handler == SIG_DFL) {
      std::signal(SIGPIPE, SIG_IGN);
    }
  }

  static std::shared_ptr<GlooLines> connect_gloo(const World& world, const Store& store, std::int64_t rank,
                                                 std::size_t size, std::int64_t& count) {
    ignore_closed_connections();
    auto options = c10d::ProcessGroupGloo::Options::create(world.timeout);
    // Binding to a given address keeps Gloo from resolving the host's own name, which may fail on an isolated host.
    options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(world.address, false));
    auto gloo =
        c10::make_intrusive<TaggedGloo>(store, static_cast<int>(rank), static_cast<int>(size), std::move(options));
    // The watch gives up after the time-out, with a better message; Gloo's own time-out is for when the watch fails.
    gloo->setTimeout(world.timeout * 2 + std::chrono::seconds(1));
    ++count;
    return std::make_shared<GlooLines>(std::move(gloo));
  }

  /// One communicator serves gathers and reductions, as in FSDP2: NCCL runs the collectives of one in order whatever
  /// their streams, two on one device may wait for each other for ever when ranks start them in different orders, and
  /// each holds buffers for every peer.
  void connect_engine(Channel& channel, const std::string& axes) {
    const auto factory = options.nccl || world.device.is_cpu() ? options.nccl : nccl_factory();
    if (!factory) {
      TORCH_CHECK(world.device.is_cpu(), "World::device is ", world.device, " but this program has no NCCL; ",
                  "build it with sealift::train_cuda, or load the CUDA plug-in before make_groups");
      return;
    }
    if (!engines_) engines_ = std::make_shared<OwnedEngines>(watch);
    NcclRequest request{.store = store_of(channel.name + "/nccl"),
                        .rank = static_cast<int>(channel.own),
                        .size = static_cast<int>(channel.size()),
                        .name = channel.name,
                        .ranks = channel.members,
                        .device = world.device,
                        .high_priority = true,
                        .timeout = world.timeout,
                        .split_from = engines_made() == 0 ? nullptr : engines_->all.front(),
                        .color = static_cast<int>(channel.members.front())};
    channel.engine = watched(axes, std::packaged_task([factory, request = std::move(request)] {
                               use_device(request.device);
                               return factory(request);
                             }));
    engines_->all.push_back(channel.engine);
    channel.engines = engines_;
    watch->engines().add(channel.engine);
  }

  /// Runs `connect` on a thread of its own, since nothing ends it when another rank does not come; the watch names that
  /// rank. The thread is left behind then.
  c10::intrusive_ptr<c10d::Backend> watched(const std::string& axes,
                                            std::packaged_task<c10::intrusive_ptr<c10d::Backend>()> connect) {
    const Label label{.op = "connect", .unit = axes};
    auto& issued = watch->issued();
    const auto number = issued.issue(world_group_, label);
    const IssuedCollectives::Waiting waiting(issued, label, world_group_, number, nullptr);
    auto engine = connect.get_future();
    std::thread thread(std::move(connect));
    while (engine.wait_for(std::chrono::milliseconds(10)) != std::future_status::ready) {
      if (!issued.has_failed()) continue;
      thread.detach();
      issued.stop_at(label);
    }
    thread.join();
    try {
      return engine.get();
    } catch (const c10::Error& error) {
      watch->broken(label, error.what_without_backtrace());
    }
  }

  std::shared_ptr<GlooLines> world_lines_;
  std::shared_ptr<OwnedEngines> engines_;  ///< the world's first
  std::size_t world_group_ = 0;
  std::map<std::vector<std::int64_t>, Collectives> made_;
  std::shared_ptr<std::int64_t> gloo_made_ = std::make_shared<std::int64_t>(0);
};

}  // namespace detail

}  // namespace sealift::train
