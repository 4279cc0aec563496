// SPDX-License-Identifier: Apache-2.0
// When gradients are reduced: flats as their units close, buckets of replicated parameters in one order on all ranks.
// Autograd's hooks bring each gradient here; `unit` says when a unit is done and when the backward pass ends.
// A reduction runs while backward goes on. Sums are linear, so a gradient that comes after its buffer was reduced is
// reduced again at the end of the pass: slower, never wrong.
// Mirrored by trainer/plan/engine_memory.cpp and trainer/simulate/step_time.cpp: change both.
#pragma once

#include <sealift/train/flat/buckets.hpp>
#include <sealift/train/flat/flat_gradient.hpp>

#include <cmath>
#include <deque>

namespace sealift::train {

class Reducer {
 public:
  /// Buffers lie in `memory`, unless null.
  Reducer(Groups groups, const Policy& policy, std::shared_ptr<detail::SteadyBuffers> memory = {})
      : groups_(std::move(groups)), policy_(policy), memory_(std::move(memory)) {
    if (policy.compression.gradients == GradientCompression::PowerSgd) {
      power_sgd_ = std::make_shared<PowerSgd>(policy.compression.power_sgd);
    }
  }

  /// What PowerSGD remembers; null unless the policy asks for it.
  const std::shared_ptr<PowerSgd>& power_sgd() const { return power_sgd_; }

  /// Takes the gradients of a sharded unit's flat; returns the flat's number.
  std::size_t add(std::unique_ptr<FlatGradient> flat) {
    flats_.push_back(std::move(flat));
    return flats_.size() - 1;
  }

  /// Takes replicated parameters, in the order of the model, each with the dtype to reduce it in and the ranks that
  /// hold copies; returns their flat's number. Once, after the last `add`.
  std::size_t add_replicated(std::vector<GradientSlot> slots, std::vector<std::optional<at::ScalarType>> dtypes,
                             std::vector<Groups> copies) {
    slots_ = std::move(slots);
    dtypes_ = std::move(dtypes);
    copies_ = std::move(copies);
    places_.resize(slots_.size());
    make_buckets(bucket_order({}, slots_.size()));  // the first pass shows in which order gradients really come
    return flats_.size();
  }

  /// Begins a backward pass, whose gradients are to be reduced if `sync`, and over copies too if `over_copies`.
  void begin_pass(bool sync, bool over_copies) {
    for (auto* gradients : all()) gradients->take_marks();
    // Not while buckets hold the sum of earlier passes.
    if (rebuild_due_ && !holds_sums_) rebuild();
    for (auto* gradients : all()) gradients->hide_means();
    sync_ = sync;
    over_copies_ = over_copies;
    holds_sums_ = !sync || !over_copies;
    next_bucket_ = 0;
    for (auto& bucket : buckets_) {
      bucket.seen.assign(bucket.gradients->slots().size(), false);
      bucket.missing = bucket.seen.size();
    }
  }

  /// Takes the gradient that autograd has left on parameter `id`.
  void collect(ParameterId id) {
    auto& gradients = gradients_of(id);
    const auto slot = slot_of(id);
    if (gradients.reduction() != Reduction::Idle) finish_through(gradients);
    gradients.collect(slot);
    // Whole gradients that are not summed over copies yet are only collected.
    if (!is_replicated(id.flat) || !sync_ || !over_copies_) return;
    // Ranks that use different parameters fill buckets at different times, between other flats.
    if (policy_.find_unused_parameters && !flats_.empty()) return;
    if (!rebuilt_) ready_order_.push_back(static_cast<std::int64_t>(id.index));
    auto& bucket = buckets_[places_[id.index].bucket];
    if (!bucket.seen[slot]) --bucket.missing;
    bucket.seen[slot] = true;
    // Strictly in order, so that ranks whose gradients come in another order still reduce the same buckets together.
    while (next_bucket_ < buckets_.size() && buckets_[next_bucket_].missing == 0) {
      start(*buckets_[next_bucket_++].gradients);
    }
  }

  /// The unit that flat `flat` belongs to is done with its backward. Buckets do not wait for a unit.
  void close(std::size_t flat) {
    if (is_replicated(flat)) return;
    auto& gradients = *flats_[flat];
    gradients.settle();
    if (!sync_ || !is_due(gradients)) return;
    // Without shards a unit's calls are no collectives, so ranks may close different units.
    if (policy_.find_unused_parameters && gradients.layout().shards == 1) return;
    // One sum over the shard group in flight, and one over the copies, bound the memory to one unit's whole gradients
    // and one shard besides those being made. With unused parameters, shards wait for the ranks' agreement.
    const std::size_t in_flight = gradients.sums_over_copies() ? 1 : 0;
    while (!policy_.find_unused_parameters && running_.size() > in_flight) finish_oldest();
    start(gradients);
  }

  /// Ends the backward pass: reduces what is left and waits for everything.
  void end_pass() {
    if (sync_) reduce_rest();
    for (auto* gradients : all()) gradients->show_means();
  }

  /// After a backward pass: guards in place of the gradients that the loop cannot read.
  void set_marks() {
    for (auto* gradients : all()) gradients->set_marks();
  }

  /// Gradients become sum / `divisor`; 0: the world size.
  void set_divisor(double divisor) {
    TORCH_CHECK(divisor >= 0 && std::isfinite(divisor), "gradients are to be divided by ", divisor,
                "; expected a finite number above 0, or 0 for the world size");
    divisor_ = divisor;
  }

  /// Drops what was collected and not reduced: a step was cut short.
  void drop() {
    for (auto* gradients : all()) gradients->drop();
    holds_sums_ = false;
  }

  /// Adds the means that wait in host memory to the gradients of the leaves.
  void flush() {
    for (auto* gradients : all()) gradients->flush();
  }

  /// Waits for the reductions in flight and drops what was not reduced, after a pass that failed.
  void reset() {
    while (!running_.empty()) finish_oldest();
    drop();
    started_.clear();
  }

  /// The buckets of replicated parameters, in the order in which they are reduced.
  std::vector<const FlatGradient*> buckets() const {
    std::vector<const FlatGradient*> result;
    for (const auto& bucket : buckets_) result.push_back(bucket.gradients.get());
    return result;
  }

 private:
  struct Bucket {
    std::unique_ptr<FlatGradient> gradients;
    std::vector<bool> seen;   ///< per slot: collected in this pass
    std::size_t missing = 0;  ///< slots that were not
  };
  /// Where a replicated parameter's gradient is collected.
  struct Place {
    std::size_t bucket = 0, slot = 0;
  };

  bool is_replicated(std::size_t flat) const { return flat == flats_.size(); }

  /// The buffer that collects the gradient of parameter `id`, and its slot there.
  FlatGradient& gradients_of(ParameterId id) const {
    return is_replicated(id.flat) ? *buckets_[places_[id.index].bucket].gradients : *flats_[id.flat];
  }
  std::size_t slot_of(ParameterId id) const { return is_replicated(id.flat) ? places_[id.index].slot : id.index; }

  /// Every parameter with a gradient: those of the flats, then the replicated ones.
  std::vector<ParameterId> ids() const {
    std::vector<ParameterId> result;
    for (std::size_t flat = 0; flat <= flats_.size(); ++flat) {
      const auto count = is_replicated(flat) ? slots_.size() : flats_[flat]->slots().size();
      for (std::size_t index = 0; index < count; ++index) result.push_back({flat, index});
    }
    return result;
  }

  std::vector<FlatGradient*> all() const {
    std::vector<FlatGradient*> result;
    for (const auto& bucket : buckets_) result.push_back(bucket.gradients.get());
    for (const auto& flat : flats_) result.push_back(flat.get());
    return result;
  }

  bool is_due(const FlatGradient& gradients) const {
    const bool possible = over_copies_ || gradients.layout().shards > 1;
    return possible && gradients.needs_reduction() && gradients.reduction() == Reduction::Idle;
  }

  bool started(const FlatGradient& gradients) const {
    return std::find(started_.begin(), started_.end(), &gradients) != started_.end();
  }

  void start(FlatGradient& gradients) {
    for (auto* older : running_) older->advance();
    gradients.start(over_copies_);
    running_.push_back(&gradients);
    started_.push_back(&gradients);
  }

  /// Reduces what the pass has left, and waits for everything.
  void reduce_rest() {
    for (; next_bucket_ < buckets_.size(); ++next_bucket_) {
      auto& bucket = *buckets_[next_bucket_].gradients;
      if (is_due(bucket)) start(bucket);
    }
    for (auto& flat : flats_) {
      if (is_due(*flat) && !started(*flat)) start(*flat);
    }
    if (!policy_.find_unused_parameters) {
      while (!running_.empty()) finish_oldest();
      for (auto* gradients : all()) {  // those that came after their buffer was reduced
        if (gradients->has_any_gradient() && is_due(*gradients)) start(*gradients);
      }
    }
    finish_all();
    for (auto* gradients : all()) gradients->land();
    started_.clear();
    if (power_sgd_ && over_copies_) power_sgd_->count_iteration();
    rebuild_due_ = !rebuilt_ && !buckets_.empty() && over_copies_;
  }

  double divisor() const { return divisor_ > 0 ? divisor_ : static_cast<double>(groups_.mesh.world_size()); }

  void finish_oldest() {
    auto* gradients = running_.front();
    running_.pop_front();
    policy_.find_unused_parameters ? gradients->put_aside() : gradients->finish(divisor());
  }

  void finish_through(const FlatGradient& gradients) {
    while (gradients.reduction() != Reduction::Idle) finish_oldest();
  }

  /// Waits for everything; where ranks may have used different parameters, one that any rank used gets its mean on all,
  /// and a buffer that any rank has to reduce again is reduced again by all.
  void finish_all() {
    while (!running_.empty()) finish_oldest();
    if (!policy_.find_unused_parameters) return;
    const auto parameters = ids();
    if (parameters.empty()) return;  // one rank, or nothing to train
    const auto buffers = all();
    const auto count = parameters.size();
    // Twice: what some rank has to reduce again is known after the first time.
    for (const bool again : {true, false}) {
      auto flags = torch::zeros({static_cast<std::int64_t>(count + buffers.size())}, torch::kInt32);
      auto* flag = flags.mutable_data_ptr<std::int32_t>();
      for (std::size_t i = 0; i < count; ++i) flag[i] = gradients_of(parameters[i]).was_used(slot_of(parameters[i]));
      for (std::size_t i = 0; i < buffers.size(); ++i)
        flag[count + i] = buffers[i]->has_any_gradient() && is_due(*buffers[i]);
      auto sum = flags.to(device_of_values(gradients_of(parameters.front()).slots().front().parameter.device()));
      groups_.world.all_reduce(sum, "which parameters were used").wait();
      flags.copy_(sum);
      bool any = false;
      for (std::size_t i = 0; again && i < buffers.size(); ++i) {
        if (flag[count + i] == 0) continue;
        start(*buffers[i]);
        any = true;
      }
      while (!running_.empty()) finish_oldest();
      if (any) continue;
      for (std::size_t i = 0; i < count; ++i) {
        auto& gradients = gradients_of(parameters[i]);
        if (flag[i] > 0 && gradients.has_sum_aside()) gradients.set_used(slot_of(parameters[i]));
      }
      break;
    }
    for (auto* gradients : buffers) gradients->give(divisor());
  }

  /// Makes the buckets again, in the order in which gradients came in the first pass on rank 0.
  void rebuild() {
    rebuilt_ = true;
    rebuild_due_ = false;
    flush();
    const auto order = bucket_order(std::exchange(ready_order_, {}), slots_.size());
    auto shared = torch::tensor(order, torch::kInt64).to(device_of_values(slots_.front().parameter.device()));
    groups_.world.broadcast(shared, "order of gradients").wait();
    shared = shared.cpu();
    make_buckets({shared.data_ptr<std::int64_t>(), shared.data_ptr<std::int64_t>() + shared.numel()});
    if (memory_) memory_->release(0);  // the first buckets' have other sizes
  }

  /// Makes buckets of one kind each over the replicated parameters in `order`; nothing may be collected.
  void make_buckets(const std::vector<std::int64_t>& order) {
    buckets_.clear();
    // By the number of copies too, which tells groups apart: those of the mesh, and those without one of its axes.
    std::map<std::tuple<std::int64_t, at::ScalarType, std::optional<at::ScalarType>>, std::vector<std::size_t>> kinds;
    for (const auto each : order) {
      const auto index = static_cast<std::size_t>(each);
      kinds[{-copies_[index].world.size(), slots_[index].leaf.scalar_type(), dtypes_[index]}].push_back(index);
    }
    for (const auto& [kind, members] : kinds) {
      std::vector<std::int64_t> bytes;
      for (const auto index : members) bytes.push_back(static_cast<std::int64_t>(slots_[index].leaf.nbytes()));
      for (const auto& part : assign_buckets(bytes, policy_.first_bucket_bytes, policy_.bucket_bytes)) {
        std::vector<GradientSlot> slots;
        std::vector<std::vector<std::int64_t>> shapes;
        for (const auto i : part) {
          places_[members[i]] = {.bucket = buckets_.size(), .slot = slots.size()};
          slots.push_back(slots_[members[i]]);
          shapes.push_back(slots.back().parameter.sizes().vec());
        }
        auto gradients =
            std::make_unique<FlatGradient>(std::move(slots), make_flat_layout(shapes, 1), copies_[members[part[0]]],
                                           FlatGradient::Options{.label = "bucket " + std::to_string(buckets_.size()),
                                                                 .reduce_dtype = std::get<2>(kind),
                                                                 .on_host = policy_.offload.gradients,
                                                                 .always_used = policy_.find_unused_parameters,
                                                                 .compression = policy_.compression.gradients,
                                                                 .power_sgd = power_sgd_,
                                                                 .memory = memory_});
        buckets_.push_back({std::move(gradients), {}, 0});
      }
    }
  }

  Groups groups_;
  Policy policy_;
  std::shared_ptr<detail::SteadyBuffers> memory_;
  std::shared_ptr<PowerSgd> power_sgd_;
  std::vector<std::unique_ptr<FlatGradient>> flats_;   ///< by number; the next number is the replicated parameters'
  std::vector<GradientSlot> slots_;                    ///< of the replicated parameters
  std::vector<std::optional<at::ScalarType>> dtypes_;  ///< ... to reduce them in
  std::vector<Groups> copies_;                         ///< ... over these
  std::vector<Place> places_;                          ///< ... in the buckets
  std::vector<Bucket> buckets_;                        ///< in the order in which they are reduced
  std::size_t next_bucket_ = 0;
  std::deque<FlatGradient*> running_;      ///< reductions in flight, oldest first
  std::vector<FlatGradient*> started_;     ///< in this pass
  std::vector<std::int64_t> ready_order_;  ///< indices of replicated gradients as they came in the first reduced pass
  bool rebuilt_ = false, rebuild_due_ = false;
  bool sync_ = true, over_copies_ = true;
  bool holds_sums_ = false;  ///< buffers hold gradients of passes that were not fully reduced
  double divisor_ = 0;       ///< 0: the world size
};

}  // namespace sealift::train
