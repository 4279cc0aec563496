// SPDX-License-Identifier: Apache-2.0
// When gradients are reduced: flats as their units close, buckets of replicated parameters in one order on all ranks.
// Autograd's hooks bring each gradient here; `unit` says when a unit is done and when the backward pass ends.
// A reduction runs while backward goes on. Sums are linear, so a gradient that comes after its buffer was reduced is
// reduced again at the end of the pass: slower, never wrong.
#pragma once

#include <sealift/train/flat/buckets.hpp>
#include <sealift/train/flat/flat_gradient.hpp>

#include <deque>

namespace sealift::train {

class Reducer {
 public:
  Reducer(Groups groups, const Policy& policy) : groups_(std::move(groups)), policy_(policy) {}

  /// Takes the gradients of a sharded unit's flat; returns the flat's number.
  std::size_t add(std::unique_ptr<FlatGradient> flat) {
    flats_.push_back(std::move(flat));
    return flats_.size() - 1;
  }

  /// Takes replicated parameters, in the order of the model, each with the dtype to reduce it in; returns their flat's
  /// number. Once, after the last `add`.
  std::size_t add_replicated(std::vector<GradientSlot> slots, std::vector<std::optional<at::ScalarType>> dtypes) {
    slots_ = std::move(slots);
    dtypes_ = std::move(dtypes);
    places_.resize(slots_.size());
    make_buckets(bucket_order({}, slots_.size()));  // the first pass shows in which order gradients really come
    return flats_.size();
  }

  /// Begins a backward pass, whose gradients are to be reduced if `sync`, and over copies too if `over_copies`.
  void begin_pass(bool sync, bool over_copies) {
    if (rebuild_due_) rebuild();
    sync_ = sync;
    over_copies_ = over_copies;
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
    if (!is_replicated(id.flat) || !sync_) return;
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
    if (!sync_ || !is_due(gradients)) return;
    // One reduction in flight bounds the memory to one unit's whole gradients besides those being made.
    if (!policy_.find_unused_parameters && !running_.empty()) finish_oldest();
    start(gradients);
  }

  /// Ends the backward pass: reduces what is left and waits for everything.
  void end_pass() {
    if (!sync_) return;
    for (; next_bucket_ < buckets_.size(); ++next_bucket_) {
      auto& bucket = *buckets_[next_bucket_].gradients;
      if (is_due(bucket)) start(bucket);
    }
    for (auto& flat : flats_) {
      if (is_due(*flat) && !started(*flat)) start(*flat);
    }
    if (policy_.find_unused_parameters) agree_on_used();
    while (!running_.empty()) finish_oldest();
    for (auto* gradients : all()) {  // those that came after their buffer was reduced
      if (gradients->has_any_gradient()) start(*gradients);
    }
    while (!running_.empty()) finish_oldest();
    started_.clear();
    rebuild_due_ = !rebuilt_ && !buckets_.empty();
  }

  /// Adds the means that wait in host memory to the gradients of the leaves.
  void flush() {
    for (auto* gradients : all()) gradients->flush();
  }

  /// Waits for the reductions in flight and drops what was not reduced, after a pass that failed.
  void reset() {
    while (!running_.empty()) finish_oldest();
    for (auto* gradients : all()) gradients->drop();
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

  static bool is_due(const FlatGradient& gradients) {
    return gradients.needs_reduction() && gradients.reduction() == Reduction::Idle;
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

  void finish_oldest() {
    auto* gradients = running_.front();
    running_.pop_front();
    gradients->finish();
  }

  void finish_through(const FlatGradient& gradients) {
    while (gradients.reduction() != Reduction::Idle) finish_oldest();
  }

  /// Marks a parameter that any rank used as used on all ranks.
  void agree_on_used() {
    const auto parameters = ids();
    auto used = torch::zeros({static_cast<std::int64_t>(parameters.size())}, torch::kInt32);
    auto* flags = used.mutable_data_ptr<std::int32_t>();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      flags[i] = gradients_of(parameters[i]).has_gradient(slot_of(parameters[i]));
    }
    const auto device = gradients_of(parameters.front()).slots().front().parameter.device();
    auto sum = used.to(device);
    groups_.world.all_reduce(sum, "which parameters were used").wait();
    used.copy_(sum);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (flags[i] > 0) gradients_of(parameters[i]).set_used(slot_of(parameters[i]));
    }
  }

  /// Makes the buckets again, in the order in which gradients came in the first pass on rank 0.
  void rebuild() {
    rebuilt_ = true;
    rebuild_due_ = false;
    flush();
    const auto order = bucket_order(std::exchange(ready_order_, {}), slots_.size());
    auto shared = torch::tensor(order, torch::kInt64).to(slots_.front().parameter.device());
    groups_.world.broadcast(shared, "order of gradients").wait();
    shared = shared.cpu();
    make_buckets({shared.data_ptr<std::int64_t>(), shared.data_ptr<std::int64_t>() + shared.numel()});
  }

  /// Makes buckets of one dtype each over the replicated parameters in `order`; nothing may be collected.
  void make_buckets(const std::vector<std::int64_t>& order) {
    buckets_.clear();
    std::map<std::pair<at::ScalarType, std::optional<at::ScalarType>>, std::vector<std::size_t>> by_dtype;
    for (const auto each : order) {
      const auto index = static_cast<std::size_t>(each);
      by_dtype[{slots_[index].leaf.scalar_type(), dtypes_[index]}].push_back(index);
    }
    for (const auto& [dtype, members] : by_dtype) {
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
            std::make_unique<FlatGradient>(std::move(slots), make_flat_layout(shapes, 1), groups_.replicated(),
                                           FlatGradient::Options{.label = "bucket " + std::to_string(buckets_.size()),
                                                                 .reduce_dtype = dtype.second,
                                                                 .on_host = policy_.offload.gradients,
                                                                 .always_used = policy_.find_unused_parameters});
        buckets_.push_back({std::move(gradients), {}, 0});
      }
    }
  }

  Groups groups_;
  Policy policy_;
  std::vector<std::unique_ptr<FlatGradient>> flats_;   ///< by number; the next number is the replicated parameters'
  std::vector<GradientSlot> slots_;                    ///< of the replicated parameters
  std::vector<std::optional<at::ScalarType>> dtypes_;  ///< ... to reduce them in
  std::vector<Place> places_;                          ///< ... in the buckets
  std::vector<Bucket> buckets_;                        ///< in the order in which they are reduced
  std::size_t next_bucket_ = 0;
  std::deque<FlatGradient*> running_;      ///< reductions in flight, oldest first
  std::vector<FlatGradient*> started_;     ///< in this pass
  std::vector<std::int64_t> ready_order_;  ///< indices of replicated gradients as they came in the first reduced pass
  bool rebuilt_ = false, rebuild_due_ = false;
  bool sync_ = true, over_copies_ = true;
};

}  // namespace sealift::train
