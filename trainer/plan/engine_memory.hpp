// SPDX-License-Identifier: Apache-2.0
// What the engine holds of its units, in numbers: shards, gathered parameters, gradients, and what reduces them.
// flat_param.hpp, flat_gradient.hpp and reducer.hpp, without the tensors. `memory` plays a step on it.
#pragma once

#include "trainer/plan/pool.hpp"
#include "trainer/plan/way.hpp"

#include <deque>
#include <vector>

namespace sealift::trainer::plan {

inline constexpr std::int64_t kReduceBytes = 4;  ///< of an element: gradients are summed in fp32

/// The buffers that a channel over Gloo keeps: at most two (comm/channel.hpp).
class ChannelBuffers {
 public:
  explicit ChannelBuffers(Meter& meter) : meter_(&meter) {}
  std::int64_t take(std::int64_t bytes);  ///< of at least `bytes`; returns its size
  void give(std::int64_t bytes);

 private:
  Meter* meter_;
  std::vector<std::int64_t> spare_;
};

/// Units are named by their number: 0 is the root, then the layers.
class EngineMemory {
 public:
  /// With what is there between steps: shards, moments, and buffers of gradients that are not sharded.
  EngineMemory(const ModelShape& shape, const Way& way, Meter& meter);

  /// Whether units stay gathered between micro-batches.
  bool keeps() const { return way_.keep_gathered && way_.micro_batches > 1 && way_.shard > 1; }

  void start_gather(std::size_t unit);
  void gather(std::size_t unit);
  void reshard(std::size_t unit);
  /// A parameter's gradient of `numel` elements goes into the unit's buffer.
  void collect(std::size_t unit, std::int64_t numel);
  /// Whether gradients of a layer's projections are added to its buffer by the products that make them
  /// (train::add_gradient_product), and one such.
  bool adds_products() const;
  void add_product(std::size_t unit);
  /// The unit's backward is done: frees it, and begins to reduce its gradients, if they are to be.
  void close(std::size_t unit, bool reduces, bool last);
  void finish_reductions();
  void zero_gradients();
  void release_kept() { pool_.release_kept(); }

  std::int64_t most_on_host() const { return most_host_; }

 private:
  struct Unit {
    std::vector<FlatShape> flats;
    bool in_flat = false;  ///< what is plain too: what is encoded always is
    bool is_root = false;
    std::int64_t trained = 0;  ///< elements of trained flats, padded
    std::int64_t shards = 1;

    enum { Sharded, Gathering, Whole } residence = Sharded;
    bool has_gradient = false, has_shard_gradient = false;
    std::int64_t late = 0;    ///< bytes of gradients that wait on their parameters
    std::int64_t plain = 0;   ///< ... that are left there
    std::int64_t copies = 0;  ///< ... of means that wait on the host
    std::int64_t buffer = 0;  ///< of the reduction in flight
  };

  bool offloads() const { return way_.batch.kernels == Kernels::Cuda; }
  std::int64_t wide(std::int64_t numel) const { return numel * way_.batch.compute_bytes; }
  std::int64_t sent(const FlatShape& flat) const;
  void add(const UnitShape& shape);
  void keep(Part part, std::int64_t bytes, bool on_host);
  void to_host(std::int64_t bytes);
  void make_room(Unit& unit);
  void settle(Unit& unit);
  void leave_copies(Unit& unit);
  void summing(Unit& unit);
  void finish_oldest();

  Way way_;
  Meter* meter_;
  Pool pool_;
  ChannelBuffers channel_;
  std::vector<Unit> units_;
  std::deque<Unit*> running_;  ///< whose reductions are in flight
  std::int64_t host_ = 0, most_host_ = 0;
};

}  // namespace sealift::trainer::plan
