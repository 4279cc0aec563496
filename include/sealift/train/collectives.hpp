// SPDX-License-Identifier: Apache-2.0
// The door to c10d: collectives over flat buffers, counted and watched, each returning a ticket to wait on.
// Sees tensors and groups, never parameters; `flat_param` above decides what is sent and when.
// The engines are c10d's own, Gloo for CPU tensors and NCCL for CUDA ones: no transport is written in this project.
//
// On Gloo, gather and reduce-scatter are made of c10d's point-to-point calls: every rank sends each peer its part
// straight from and into the flats, and sums what it got. Gloo's own gather copies all of it twice more, and its
// reduce-scatter is an all-reduce. Measured on 2 cores over loopback, fp32, torch 2.11, Gloo's time : ours:
//   whole      64 KiB   1 MiB   4 MiB   16 MiB   64 MiB
//   gather     1.9      2.2     1.3     1.0      3.1     2 ranks
//              4.9      4.8     1.4     1.2      2.4     4 ranks
//   reduce-    3.7      2.6     5.0     2.6      3.4     2 ranks
//   scatter    1.8      2.6     4.2     3.5      3.0     4 ranks
// Also tried, and between the two: gather by W broadcasts, reduce-scatter by all-to-all (0.7 of ours) or by W reduces
// (0.3 to 0.7 of ours). Gloo's all-reduce is as fast as anything composed, so it stays, but for a few numbers.
#pragma once

#include <sealift/train/channel.hpp>
#include <sealift/train/flat_layout.hpp>

#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#ifdef USE_C10D_NCCL
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#endif

#include <cstring>

namespace sealift::train {

/// Up to here an all-reduce sends everything to everyone: one round instead of Gloo's 2 (W - 1).
inline constexpr std::int64_t kFewBytes = 512;

/// A collective that was issued; its buffers belong to it until `wait` returns.
class Ticket {
 public:
  Ticket() = default;
  explicit Ticket(std::shared_ptr<detail::InFlight> in_flight) : in_flight_(std::move(in_flight)) {}

  /// Blocks until the collective is done (on CUDA: until the current stream will wait for it) and throws its error;
  /// does nothing the second time.
  void wait() {
    if (const auto in_flight = std::exchange(in_flight_, nullptr)) in_flight->wait();
  }

 private:
  std::shared_ptr<detail::InFlight> in_flight_;
};

/// One group of ranks. A group of one does nothing and counts nothing. `unit` and `detail` go into messages and must be
/// the same on all ranks of the group, as must the order of calls; calls come from one thread at a time.
class Collectives {
 public:
  explicit Collectives(std::shared_ptr<detail::Channel> channel) : channel_(std::move(channel)) {}

  /// A group of one rank.
  Collectives() = default;

  std::int64_t rank() const { return channel_ ? channel_->rank() : 0; }
  std::int64_t size() const { return channel_ ? channel_->size() : 1; }

  /// How often ranks compared what they were about to do.
  std::int64_t order_checks() const { return channel_ ? channel_->order_checks : 0; }

  /// full [W * n] = every rank's shard [n], in rank order; `shard` may be this rank's part of `full`.
  Ticket all_gather(at::Tensor full, at::Tensor shard, const std::string& unit = {}, std::uint64_t detail = 0) {
    if (size() == 1) return {};
    check_parts(full, shard);
    auto flight = begin("all_gather", full, unit, detail);
    count(channel_->traffic->all_gather, nbytes(full) * (size() - 1) / size());
    if (full.numel() == 0) return {};
    if (full.is_cuda()) {
      return issue(flight, Engine::Nccl, [&] { return channel_->gathers->_allgather_base(full, shard); });
    }
    full = full.flatten();
    const auto mine = part(full, rank());
    if (mine.data_ptr() != shard.data_ptr()) mine.copy_(shard.flatten());
    flight->exchange([&](auto) { return mine; }, [&](auto peer) { return part(full, peer); });
    return Ticket(std::move(flight));
  }

  /// shard [n] = this rank's part of the sum of every rank's full [W * n], added in rank order; fp16 and bf16 are added
  /// in fp32 and rounded once. `shard` may be this rank's part of `full`.
  Ticket reduce_scatter(at::Tensor shard, at::Tensor full, const std::string& unit = {}, std::uint64_t detail = 0) {
    if (size() == 1) return {};
    check_parts(full, shard);
    auto flight = begin("reduce_scatter", full, unit, detail);
    count(channel_->traffic->reduce_scatter, nbytes(full) * (size() - 1) / size());
    if (full.numel() == 0) return {};
    if (full.is_cuda()) {
      return issue(flight, Engine::Nccl, [&] { return channel_->reductions->_reduce_scatter_base(shard, full); });
    }
    full = full.flatten();
    auto theirs = buffer(*flight, shard);
    flight->exchange([&](auto peer) { return part(full, peer); }, [&](auto peer) { return row(theirs, peer); });
    flight->finish = [sum = shard.flatten(), own = part(full, rank()), theirs, rank = rank()] {
      add_up(sum, own, theirs, rank);
    };
    return Ticket(std::move(flight));
  }

  /// tensor = the sum of every rank's tensor.
  Ticket all_reduce(at::Tensor tensor, const std::string& unit = {}, std::uint64_t detail = 0) {
    if (size() == 1) return {};
    auto flight = begin("all_reduce", tensor, unit, detail);
    const bool few = tensor.is_cpu() && nbytes(tensor) <= kFewBytes;
    count(channel_->traffic->all_reduce,
          few ? nbytes(tensor) * (size() - 1) : 2 * nbytes(tensor) * (size() - 1) / size());
    if (tensor.numel() == 0) return {};
    std::vector<at::Tensor> tensors{tensor};
    if (tensor.is_cuda()) {
      return issue(flight, Engine::Nccl, [&] { return channel_->reductions->allreduce(tensors); });
    }
    if (!few) return issue(flight, Engine::Worker, [&] { return channel_->gloo->allreduce(tensors); });
    // Gloo reads `own` until every peer has it, so the sum goes into `tensor` only then.
    auto flat = tensor.flatten();
    auto theirs = buffer(*flight, flat);
    flight->exchange([&](auto) { return flat; }, [&](auto peer) { return row(theirs, peer); });
    flight->finish = [flat, theirs, rank = rank()] { add_up(flat, flat, theirs, rank); };
    return Ticket(std::move(flight));
  }

  /// tensor = rank 0's tensor.
  Ticket broadcast(at::Tensor tensor, const std::string& unit = {}, std::uint64_t detail = 0) {
    if (size() == 1) return {};
    auto flight = begin("broadcast", tensor, unit, detail);
    count(channel_->traffic->broadcast, nbytes(tensor) * (size() - 1) / size());
    if (tensor.numel() == 0) return {};
    if (tensor.is_cuda()) {
      std::vector<at::Tensor> tensors{tensor};
      return issue(flight, Engine::Nccl, [&] { return channel_->gathers->broadcast(tensors); });
    }
    // As bytes: Gloo does not know every dtype.
    std::vector<at::Tensor> tensors{tensor.flatten().view(at::kByte)};
    return issue(flight, Engine::Worker, [&] { return channel_->gloo->broadcast(tensors); });
  }

  /// Returns when every rank of the group has called it.
  void barrier() {
    if (size() == 1) return;
    const auto token = at::zeros({size()}, at::kByte);
    auto flight = begin("barrier", token, {}, 0);
    flight->exchange([&](auto) { return part(token, rank()); }, [&](auto peer) { return part(token, peer); });
    flight->wait();
  }

 private:
  using Engine = detail::InFlight::Engine;
  using Flight = std::shared_ptr<detail::InFlight>;

  static std::int64_t nbytes(const at::Tensor& tensor) { return static_cast<std::int64_t>(tensor.nbytes()); }
  static void count(Traffic& traffic, std::int64_t bytes) {
    traffic.calls += 1;
    traffic.bytes += bytes;
  }

  /// Rank `peer`'s part of a flat buffer.
  at::Tensor part(const at::Tensor& full, std::int64_t peer) const {
    const auto n = full.numel() / size();
    return full.narrow(0, peer * n, n);
  }

  void check_parts(const at::Tensor& full, const at::Tensor& shard) const {
    TORCH_CHECK(full.numel() == size() * shard.numel() && full.scalar_type() == shard.scalar_type(), "full has ",
                full.numel(), " ", full.scalar_type(), ", shard ", shard.numel(), " ", shard.scalar_type(),
                ", in a group of ", size(), " ranks; full must hold one shard of the same dtype per rank");
    TORCH_CHECK(full.is_contiguous() && shard.is_contiguous(),
                "full and shard must be contiguous; pass flat buffers, or contiguous() copies");
  }

  /// What the other ranks send, one row each without this rank's, in memory that is used again.
  static at::Tensor buffer(detail::InFlight& flight, const at::Tensor& like) {
    const auto rows = flight.channel->size() - 1;
    const auto bytes = rows * nbytes(like);
    flight.buffer = flight.channel->take_buffer(bytes);
    return flight.buffer.narrow(0, 0, bytes).view(like.scalar_type()).view({rows, like.numel()});
  }
  at::Tensor row(const at::Tensor& theirs, std::int64_t peer) const { return theirs[peer < rank() ? peer : peer - 1]; }

  /// sum = own and theirs, added in rank order: the same bits wherever it is done. In pieces that stay in the cache.
  static void add_up(const at::Tensor& sum, const at::Tensor& own, const at::Tensor& theirs, std::int64_t rank) {
    at::NoGradGuard no_grad;
    const bool widen = sum.scalar_type() == at::kHalf || sum.scalar_type() == at::kBFloat16;
    constexpr std::int64_t kPiece = 1 << 16;
    for (std::int64_t begin = 0; begin < sum.numel(); begin += kPiece) {
      const auto n = std::min(kPiece, sum.numel() - begin);
      const auto term = [&](std::int64_t r) {
        return (r == rank ? own : theirs[r < rank ? r : r - 1]).narrow(0, begin, n);
      };
      auto out = sum.narrow(0, begin, n);
      if (theirs.size(0) == 1) {
        at::add_out(out, term(0), term(1));
        continue;
      }
      auto total = widen ? term(0).to(at::kFloat) : at::add(term(0), term(1));
      for (std::int64_t r = widen ? 1 : 2; r <= theirs.size(0); ++r) total.add_(term(r));
      out.copy_(total);
    }
  }

  /// Checks that all ranks come to this collective, if it is time to, and gives it its number.
  Flight begin(const char* op, const at::Tensor& tensor, const std::string& unit, std::uint64_t detail) {
    TORCH_CHECK(tensor.is_contiguous(), op, " of a tensor of shape ", tensor.sizes(), " and strides ", tensor.strides(),
                "; pass a contiguous one");
    TORCH_CHECK(tensor.is_cpu() || (tensor.is_cuda() && channel_->gathers), op, " of a tensor on ", tensor.device(),
                " in a group that was made for the CPU; set World::device before make_groups");
    auto flight = std::make_shared<detail::InFlight>();
    flight->channel = channel_;
    flight->label = {op, unit, detail, tensor.numel(), tensor.scalar_type()};
    const auto hash = flight->label.hash();
    const auto transition = (channel_->previous ^ (hash >> 1)) * 0x100000001b3 ^ hash;
    const bool known = channel_->agreed.contains(transition);
    if (channel_->order_check == OrderCheck::Always || (channel_->order_check == OrderCheck::NewOnly && !known)) {
      compare(flight->label);
      channel_->agreed.insert(transition);
    }
    channel_->previous = hash;
    flight->group = channel_->group;
    flight->number = channel_->watch->issue(channel_->group, flight->label);
    flight->tag = static_cast<int>((hash & 0x7ffff) << 11 | (flight->number & 0x7ff));
    return flight;
  }

  /// Tells all ranks what this one is about to do; throws on all of them when they differ.
  void compare(const Label& label) {
    constexpr std::int64_t kSize = 256;
    auto cards = at::zeros({size(), kSize}, at::kByte);
    const auto hash = label.hash();
    const auto text = label.text().substr(0, kSize - sizeof hash - 1);
    auto* mine = cards[rank()].data_ptr<std::uint8_t>();
    std::memcpy(mine, &hash, sizeof hash);
    std::memcpy(mine + sizeof hash, text.c_str(), text.size());

    auto& watch = *channel_->watch;
    detail::InFlight flight{.channel = channel_, .label = label, .group = channel_->check_group};
    flight.number = watch.issue(flight.group, label);
    flight.tag = static_cast<int>(1u << 30 | (flight.number & 0x3fffffff));
    flight.exchange([&](auto) { return cards[rank()]; }, [&](auto peer) { return cards[peer]; });
    flight.wait();
    ++channel_->order_checks;

    std::vector<std::pair<std::string, std::vector<std::int64_t>>> came;  // in the order of the first rank
    bool agree = true;
    for (std::int64_t peer = 0; peer < size(); ++peer) {
      const auto* card = cards[peer].data_ptr<std::uint8_t>();
      agree = agree && std::memcmp(card, &hash, sizeof hash) == 0;
      const std::string what = reinterpret_cast<const char*>(card) + sizeof hash;
      auto same = std::find_if(came.begin(), came.end(), [&](const auto& other) { return other.first == what; });
      if (same == came.end()) same = came.insert(same, {what, {}});
      same->second.push_back(watch.members(channel_->group)[static_cast<std::size_t>(peer)]);
    }
    if (agree) return;
    std::string differ = "ranks disagree in step " + std::to_string(watch.step()) + ": ";
    for (const auto& [what, ranks] : came) differ += name_ranks(ranks) + " came to " + what + ", ";
    watch.disagree(label, differ + "in group " + watch.group_name(channel_->group) +
                              "; every rank must run the same units in the same order, with the same sizes and "
                              "gradients");
  }

  /// Hands a collective to an engine that does all of it.
  template <class Call>
  Ticket issue(const Flight& flight, Engine engine, const Call& call) {
    flight->engine = engine;
    flight->issue([&] {
      if (engine == Engine::Worker) channel_->gloo->set_tag(flight->tag);
      flight->works.push_back(call());
      if (engine == Engine::Worker) ++channel_->in_worker;
    });
    return Ticket(flight);
  }

  std::shared_ptr<detail::Channel> channel_;
};

/// This rank's place among all ranks, and where they find each other.
struct World {
  Store store;  ///< null when the rank is alone
  std::int64_t rank = 0;
  std::int64_t size = 1;
  std::string address = "127.0.0.1";  ///< what Gloo listens on here: a numeric address or a host name
  std::chrono::milliseconds timeout =
      std::chrono::minutes(5);   ///< of one collective: how long a hung rank is waited for
  at::Device device = at::kCPU;  ///< with a CUDA device, collectives of its tensors go over NCCL
};

namespace detail {

/// What groups of one world share: how to make one more.
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
    // Binding to a named address keeps Gloo from resolving the host's own name, which an isolated host may not be able
    // to.
    options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(world.address, false));
    const auto store = [&](const std::string& engine) {
      return c10::make_intrusive<c10d::PrefixStore>(generation + "/" + name + "/" + engine, world.store);
    };
    channel->gloo = c10::make_intrusive<TaggedGloo>(store("gloo"), static_cast<int>(rank), size, std::move(options));
    // The watch gives up after the time-out with the better message; Gloo's own comes only if that fails.
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
    channel->check_group = watch->add_group(name + " check", members);
    channel->group = watch->add_group(name, std::move(members));
    return Collectives(std::move(channel));
  }
};

}  // namespace detail

/// The groups that a mesh makes of a world, as one rank sees them; they count into one report. Copies are the same
/// groups.
struct Groups {
  Mesh mesh;
  Collectives world, shard, replicate;
  std::shared_ptr<TrafficReport> traffic = std::make_shared<TrafficReport>();
  std::shared_ptr<RankWatch> watch;  ///< null when the rank is alone
  std::shared_ptr<detail::Connections> connections;

  /// The same ranks with every one a replica, for a unit that is not sharded while others are.
  Groups replicated() const {
    auto groups = *this;
    groups.mesh = {mesh.world_size(), 1};
    groups.shard = {};
    groups.replicate = world;
    return groups;
  }

  /// The group of `size` neighbours in the shard group that this rank belongs to; made once. Collective over the shard
  /// group when it is made.
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

  /// The optimizer step that messages of collectives name from now on.
  void set_step(std::int64_t step) const {
    if (watch) watch->set_step(step);
  }

  /// Tells all other ranks why this one ends; call it where the program catches.
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
