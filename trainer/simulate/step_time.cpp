// SPDX-License-Identifier: Apache-2.0
// The step, played: what one rank does in the engine's order, on a clock that its links and its bus share.
// See step_time.hpp. `Player` is the stage; `Step` is the engine's order, read from the bottom.
// One rank stands for all: they do the same at the same time.
#include "trainer/simulate/step_time.hpp"

#include "trainer/simulate/player.hpp"

#include <deque>
#include <map>

namespace sealift::trainer {
namespace {

using enum StepActivity;

/// The engine's order. Names are those of the functions that it follows.
class Step {
 public:
  Step(const StepShape& shape, const Rates& rates) : shape_(shape), rates_(rates), player_(rates) {
    check_step(shape, rates);
    gathered_.resize(shape.units.size());
  }

  StepTime run() {
    for (micro_ = 0; micro_ < shape_.micro_batches; ++micro_) {
      forward();
      backward();
    }
    for (std::int64_t i = 0; i < shape_.small_collectives; ++i) small_collective();
    optimizer();
    time_.seconds = player_.now();
    return time_;
  }

  std::vector<StepEvent> events() { return player_.events(); }

 private:
  /// A unit's parameters: whole where `here`, on their way where `transfer` or `copy` is set.
  struct Whole {
    bool here = false;
    Player::Transfer transfer = {};
    std::size_t copy = Player::kNone;  ///< without a transfer
    bool has_memory() const { return here || transfer || copy != Player::kNone; }
  };

  /// A reduction in flight, and the sum over copies that follows it.
  struct Reduction {
    std::size_t unit = 0;
    bool bucket = false;
    Player::Transfer transfer = {};
    bool sums = false;  ///< over copies, already
  };

  bool last_micro_batch() const { return micro_ + 1 == shape_.micro_batches; }
  bool keeps() const { return shape_.keep_gathered && shape_.micro_batches > 1; }
  bool reduces() const { return last_micro_batch() || shape_.reduce_every_micro_batch; }

  StepEvent event(StepActivity what, std::size_t unit, Stream stream = Stream::Compute) const {
    StepEvent event;
    event.what = what;
    event.unit = unit;
    event.stream = stream;
    event.micro_batch = micro_;
    return event;
  }

  /// A part of a unit's forward or backward.
  void compute(StepActivity what, std::size_t unit, double part = 1) {
    const auto& work = shape_.units[unit];
    const auto flops = part * (what == Forward ? work.forward_flops : work.backward_flops);
    const auto bytes = what == Forward ? work.forward_memory_bytes : work.backward_memory_bytes;
    const auto memory = part * static_cast<double>(bytes);
    double seconds = flops > 0 ? flops / needed(rates_.flops, "flops") : 0;
    if (memory > 0) seconds += memory / needed(rates_.memory_bytes_per_second, "memory_bytes_per_second");
    player_.compute(event(what, unit), seconds, time_.compute);
  }

  // What flats do.

  void start_unshard(std::size_t unit, bool again) {
    const auto& work = shape_.units[unit];
    auto& whole = gathered_[unit];
    if (whole.has_memory()) return;
    if (work.bus_in_bytes > 0) whole.copy = player_.copy(event(CopyIn, unit), work.bus_in_bytes);
    const auto bytes = again && work.gather_again_bytes >= 0 ? work.gather_again_bytes : work.gather_bytes;
    if (bytes > 0) {
      whole.transfer =
          player_.issue(event(Gather, unit, Stream::Gather), bytes, std::exchange(whole.copy, Player::kNone));
    }
    whole.here = !whole.has_memory();
  }

  void unshard(std::size_t unit, bool again) {
    start_unshard(unit, again);
    auto& whole = gathered_[unit];
    if (whole.transfer) player_.wait(whole.transfer, event(GatherWait, unit), time_.exposed_gather, time_.offload);
    if (whole.copy != Player::kNone) player_.wait_for_copy(whole.copy, time_.offload);
    whole = {.here = true};
  }

  void reshard(std::size_t unit) { gathered_[unit] = {}; }

  /// `others` in their order, at most as many in flight as there are.
  void prefetch(const std::vector<std::size_t>& others, bool again) {
    auto ahead = static_cast<std::size_t>(std::count_if(
        gathered_.begin(), gathered_.end(), [](const auto& whole) { return whole.has_memory() && !whole.here; }));
    for (const auto unit : others) {
      if (ahead >= others.size()) return;
      const bool started = !gathered_[unit].has_memory();
      start_unshard(unit, again);
      ahead += started;
    }
  }

  // Forward: the root around all others.

  std::vector<std::size_t> after(std::size_t unit) const {
    const auto all = static_cast<std::int64_t>(shape_.units.size());
    const auto depth = keeps() && shape_.forward_prefetch > 0 ? all : shape_.forward_prefetch;
    std::vector<std::size_t> next;
    for (auto i = static_cast<std::int64_t>(unit) + 1; i < all && static_cast<std::int64_t>(next.size()) < depth; ++i) {
      next.push_back(static_cast<std::size_t>(i));
    }
    return next;
  }

  void forward() {
    unshard(0, false);
    prefetch(after(0), false);
    for (std::size_t unit = 1; unit < shape_.units.size(); ++unit) {
      unshard(unit, false);
      prefetch(after(unit), false);
      compute(Forward, unit);
      if (shape_.gather_again_in_backward && !keeps()) reshard(unit);
    }
    compute(Forward, 0);
  }

  // Backward: the root first, the others in reverse, what is left of the root last.

  std::vector<std::size_t> before(std::size_t unit) const {
    std::vector<std::size_t> next;
    for (auto i = unit; i-- > 1 && static_cast<std::int64_t>(next.size()) < shape_.backward_prefetch;)
      next.push_back(i);
    return next;
  }

  void backward() {
    begin_buckets();
    unshard(0, true);
    prefetch(before(shape_.units.size()), true);
    // Whole gradients of the root are ready when the embedding is done.
    compute(Backward, 0);
    for (auto unit = shape_.units.size(); unit-- > 1;) {
      unshard(unit, true);
      prefetch(before(unit), true);
      backward_of(unit);
      close(unit);
    }
    if (is_replicated(0)) fill_buckets(0, /*computes=*/false);
    close(0);
    end_pass();
  }

  void backward_of(std::size_t unit) {
    is_replicated(unit) && reduces() ? fill_buckets(unit, /*computes=*/true) : compute(Backward, unit);
  }

  /// Reducer::close: a unit's reduction begins when the one before is done; of hsdp's two sums each may be in flight.
  void close(std::size_t unit) {
    const auto& work = shape_.units[unit];
    if (!(keeps() && !last_micro_batch())) reshard(unit);
    if (!reduces() || is_replicated(unit) || work.reduce_bytes + work.copies_bytes + work.bus_out_bytes == 0) return;
    while (running_.size() > (work.copies_bytes > 0 ? 1U : 0U)) finish_oldest();
    for (auto& older : running_) advance(older);
    start({.unit = unit}, work.reduce_bytes);
  }

  void start(Reduction reduction, std::int64_t bytes) {
    auto begun = event(Reduce, reduction.unit, Stream::Reduce);
    begun.bucket = reduction.bucket;
    if (bytes > 0) reduction.transfer = player_.issue(begun, bytes);
    running_.push_back(reduction);
  }

  void wait_for(Reduction& reduction) {
    auto waiting = event(ReduceWait, reduction.unit);
    waiting.bucket = reduction.bucket;
    if (reduction.transfer) player_.wait(reduction.transfer, waiting, time_.exposed_reduce, time_.offload);
    reduction.transfer = {};
  }

  /// FlatGradient::advance: the sum over the shard group is done, that over the copies begins.
  void advance(Reduction& reduction) {
    if (std::exchange(reduction.sums, true) || reduction.bucket) return;
    wait_for(reduction);
    const auto bytes = shape_.units[reduction.unit].copies_bytes;
    if (bytes == 0 || !last_micro_batch()) return;
    reduction.transfer = player_.issue(event(SumOverCopies, reduction.unit, Stream::Copies), bytes);
  }

  void finish_oldest() {
    auto reduction = running_.front();
    running_.pop_front();
    advance(reduction);
    wait_for(reduction);
    if (reduction.bucket || shape_.units[reduction.unit].bus_out_bytes == 0) return;
    land();
    landing_ = player_.copy(event(CopyOut, reduction.unit), shape_.units[reduction.unit].bus_out_bytes);
  }

  void land() {
    const auto copy = std::exchange(landing_, Player::kNone);
    if (copy != Player::kNone) player_.wait_for_copy(copy, time_.offload);
  }

  void end_pass() {
    if (bucket_filled_ > 0) start_bucket();
    while (!running_.empty()) finish_oldest();
    land();
    for (std::size_t unit = 0; unit < shape_.units.size(); ++unit) {
      if (!(keeps() && !last_micro_batch())) reshard(unit);
    }
  }

  // Buckets of replicated parameters, in the order in which gradients come.

  bool is_replicated(std::size_t unit) const { return shape_.bucket_bytes > 0 && shape_.units[unit].gather_bytes == 0; }

  void begin_buckets() {
    buckets_ = 0;
    bucket_filled_ = 0;
  }

  std::int64_t bucket_size() const {
    return buckets_ == 0 && shape_.first_bucket_bytes > 0 ? shape_.first_bucket_bytes : shape_.bucket_bytes;
  }

  /// Runs a unit's backward, whose gradients come evenly, and starts each bucket that they fill.
  void fill_buckets(std::size_t unit, bool computes) {
    const auto bytes = reduces() ? shape_.units[unit].reduce_bytes : 0;
    for (auto left = bytes; left > 0;) {
      const auto part = std::min(left, bucket_size() - bucket_filled_);
      if (computes) compute(Backward, unit, static_cast<double>(part) / static_cast<double>(bytes));
      left -= part;
      bucket_filled_ += part;
      if (bucket_filled_ == bucket_size()) start_bucket();
    }
    if (computes && bytes == 0) compute(Backward, unit);
  }

  void start_bucket() { start({.unit = buckets_++, .bucket = true}, std::exchange(bucket_filled_, 0)); }

  // The end of the step.

  void small_collective() {
    micro_ = shape_.micro_batches - 1;
    const auto transfer = player_.issue(event(SmallCollective, 0, Stream::Reduce), 0);
    player_.wait(transfer, event(ReduceWait, 0), time_.exposed_reduce, time_.offload);
  }

  /// Moments that lie on the host come and go while others are stepped.
  void optimizer() {
    micro_ = shape_.micro_batches - 1;
    auto copy = Player::kNone;
    if (shape_.offload_bytes > 0) copy = player_.copy(event(CopyIn, 0), shape_.offload_bytes);
    if (shape_.optimizer_bytes > 0) {
      const auto rate = needed(rates_.memory_bytes_per_second, "memory_bytes_per_second");
      player_.compute(event(Optimizer, 0), static_cast<double>(shape_.optimizer_bytes) / rate, time_.optimizer);
    }
    if (copy != Player::kNone) player_.wait_for_copy(copy, time_.offload);
  }

  const StepShape& shape_;
  const Rates& rates_;
  Player player_;
  StepTime time_;
  std::int64_t micro_ = 0;
  std::vector<Whole> gathered_;
  std::deque<Reduction> running_;
  std::size_t landing_ = Player::kNone;
  std::size_t buckets_ = 0;
  std::int64_t bucket_filled_ = 0;
};

}  // namespace

StepTime simulate(const StepShape& shape, const Rates& rates) {
  return Step(shape, rates).run();
}

std::vector<StepEvent> simulate_events(const StepShape& shape, const Rates& rates) {
  Step step(shape, rates);
  step.run();
  return step.events();
}

std::vector<std::pair<StepActivity, double>> critical_parts(const std::vector<StepEvent>& events) {
  std::map<StepActivity, double> sums;
  for (const auto& event : events) {
    if (event.critical) sums[event.what] += event.end - event.begin;
  }
  std::vector<std::pair<StepActivity, double>> parts(sums.begin(), sums.end());
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return parts;
}

}  // namespace sealift::trainer
