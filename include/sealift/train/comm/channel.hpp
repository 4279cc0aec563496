// SPDX-License-Identifier: Apache-2.0
// One group of ranks as one rank sees it: its engines, and what it remembers between collectives.
// `groups` makes it, `in_flight` and `collectives` send over it.
// All groups of a world share its connections for what is sent from rank to rank, so that a group costs none of its own
// until Gloo must run a whole collective over it.
// Mirrored by trainer/plan/engine_memory.cpp: change both.
#pragma once

#include <sealift/train/bodies.hpp>
#include <sealift/train/comm/rank_watch.hpp>

#include <functional>
#include <unordered_set>
#include <utility>

namespace sealift::train {

/// Calls and bytes of one kind of collective on this rank.
struct Traffic {
  std::int64_t calls = 0;
  /// Sent by this rank, as by a ring of W ranks with f = (W - 1) / W: f * size for gather and reduce-scatter, 2f * size
  /// for all-reduce, but (W - 1) * size for an all-reduce of at most `kFewBytes`. For a broadcast, which is a tree, the
  /// mean over ranks: f * size. For an all-to-all what goes to other ranks.
  std::int64_t bytes = 0;

  bool operator==(const Traffic&) const = default;
};

/// A rank's traffic since counting started.
struct TrafficReport {
  Traffic all_gather, reduce_scatter, all_reduce, broadcast, all_to_all;

  bool operator==(const TrafficReport&) const = default;
};

/// When ranks compare labels before a collective.
enum class OrderCheck {
  Off,      ///< never: a difference shows after ranks have waited for a second
  NewOnly,  ///< when a collective follows another for the first time, so never in steady state
  Always,   ///< before every collective
};

namespace detail {

/// Gloo's connections between some ranks, or what stands for them.
struct GlooLines {
  c10::intrusive_ptr<c10d::Backend> gloo;
  int in_worker = 0;  ///< collectives that a thread of Gloo's may still run

  explicit GlooLines(c10::intrusive_ptr<c10d::Backend> gloo) : gloo(std::move(gloo)) {}
  GlooLines(const GlooLines&) = delete;
  GlooLines& operator=(const GlooLines&) = delete;
  void set_tag(int tag) const;
  ~GlooLines();
};

/// A rank's engines in the order in which they were made, the same on all ranks. They end together: the end of one
/// waits for other ranks, so each rank must come to it in the same order.
struct OwnedEngines {
  std::shared_ptr<RankWatch> watch;
  std::vector<c10::intrusive_ptr<c10d::Backend>> all;

  explicit OwnedEngines(std::shared_ptr<RankWatch> watch) : watch(std::move(watch)) {}
  OwnedEngines(const OwnedEngines&) = delete;
  OwnedEngines& operator=(const OwnedEngines&) = delete;
  ~OwnedEngines();
};

/// One group of ranks as this rank sees it. Belongs to one thread.
struct Channel {
  std::shared_ptr<RankWatch> watch;
  std::shared_ptr<TrafficReport> traffic;
  std::string name;
  std::vector<std::int64_t> members;  ///< their ranks in the world
  std::int64_t own = 0;               ///< this rank's number among them

  std::shared_ptr<GlooLines> world;                     ///< the world's, for what is sent from rank to rank
  std::function<std::shared_ptr<GlooLines>()> connect;  ///< makes `lines`
  std::shared_ptr<GlooLines> lines;  ///< the members', for Gloo's own collectives; made for the first of them

  at::Device device = at::kCPU;              ///< of the tensors that `engine` takes
  c10::intrusive_ptr<c10d::Backend> engine;  ///< the device's; null where the rank has none
  std::shared_ptr<OwnedEngines> engines;     ///< it is one of these

  std::size_t group = 0;        ///< in the watch
  std::size_t check_group = 0;  ///< in the watch, of the exchanges that compare labels
  OrderCheck order_check = OrderCheck::NewOnly;
  std::uint64_t previous = 0;                ///< hash of the last label
  std::unordered_set<std::uint64_t> agreed;  ///< hashes of pairs of labels that were compared, one after the other
  std::int64_t order_checks = 0;
  std::vector<at::Tensor> spare;  ///< byte buffers that no collective uses now

  std::int64_t rank() const { return own; }
  std::int64_t size() const { return static_cast<std::int64_t>(members.size()); }

  /// Whether `tensor` goes to the engine rather than over Gloo.
  bool takes(const at::Tensor& tensor) const { return engine && tensor.device().type() == device.type(); }

  /// A tag for Gloo, of 30 bits: other groups, labels and numbers have others.
  int tag(std::uint64_t label_hash, std::uint64_t number) const;
  /// ... for comparing labels before the collective.
  int check_tag(std::uint64_t number) const;

  /// Fresh memory is slow, so at most two buffers are kept.
  at::Tensor take_buffer(std::int64_t bytes);
  void give_buffer(at::Tensor buffer);

 private:
  std::uint64_t salt() const { return Label{.op = name}.hash() >> 7; }
};

}  // namespace detail

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/comm/channel_inl.hpp>
#endif
