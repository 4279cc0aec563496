// SPDX-License-Identifier: Apache-2.0
// When gradients are reduced: flats as their units close, buckets of replicated parameters in one order on all ranks.
// Autograd's hooks bring each gradient here; `unit` says when a unit is done and when the backward pass ends.
// A reduction runs while backward goes on. Sums are linear, so a gradient that comes after its buffer was reduced is
// reduced again at the end of the pass: slower, never wrong.
#pragma once

#include <sealift/train/flat/flat_gradient.hpp>

#include <deque>

namespace sealift::train {

/// Cuts tensors of these sizes, in order, into buckets of consecutive ones: a bucket is full when it has reached its
/// limit, `first_bytes` for the first and `other_bytes` for the others. As c10d's compute_bucket_assignment_by_size.
inline std::vector<std::vector<std::size_t>> assign_buckets(const std::vector<std::int64_t>& bytes,
                                                            std::int64_t first_bytes, std::int64_t other_bytes) {
  std::vector<std::vector<std::size_t>> buckets;
  std::int64_t filled = 0;
  bool open = false;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (!std::exchange(open, true)) buckets.emplace_back();
    buckets.back().push_back(i);
    filled += bytes[i];
    if (filled >= (buckets.size() == 1 ? first_bytes : other_bytes)) {
      open = false;
      filled = 0;
    }
  }
  return buckets;
}

class Reducer {
 public:
  Reducer(Groups groups, const Policy& policy) : groups_(std::move(groups)), policy_(policy) {}

  /// Takes the gradients of a sharded unit's flat; returns the number of its first slot's route, the others follow.
  std::size_t add(std::unique_ptr<FlatGradient> flat) {
    const auto first = routes_.size();
    for (std::size_t i = 0; i < flat->slots().size(); ++i) routes_.push_back({flat.get(), i});
    flats_.push_back(std::move(flat));
    return first;
  }

  /// Takes replicated parameters, in the order of the model; returns the number of the first one's route.
  std::size_t add_replicated(std::vector<GradientSlot> slots, std::vector<std::optional<at::ScalarType>> dtypes) {
    const auto first = routes_.size();
    first_replicated_ = first;
    routes_.resize(first + slots.size());
    slots_ = std::move(slots);
    dtypes_ = std::move(dtypes);
    // Backward runs about in reverse; the first pass shows in which order exactly.
    std::vector<std::int64_t> order(slots_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(order.size() - 1 - i);
    make_buckets(order);
    return first;
  }

  /// A backward pass begins, whose gradients are to be reduced when `sync`; over copies too when `over_copies`.
  void begin_pass(bool sync, bool over_copies) {
    if (rebuild_due_) rebuild();
    sync_ = sync;
    over_copies_ = over_copies;
    next_bucket_ = 0;
    for (auto& bucket : buckets_) bucket.seen.assign(bucket.gradients->slots().size(), false);
    for (auto& bucket : buckets_) bucket.missing = bucket.seen.size();
  }

  /// Autograd has left a gradient on the parameter of `route`.
  void collect(std::size_t route) {
    auto [flat, index] = routes_[route];
    if (flat->reduction() != Reduction::Idle) finish_through(flat);
    flat->collect(index);
    if (route < first_replicated_ || !sync_) return;
    if (!rebuilt_) ready_order_.push_back(static_cast<std::int64_t>(route - first_replicated_));
    auto& bucket = *std::find_if(buckets_.begin(), buckets_.end(),
                                 [&, flat = flat](const auto& candidate) { return candidate.gradients.get() == flat; });
    if (!bucket.seen[index]) --bucket.missing;
    bucket.seen[index] = true;
    // Strictly in order, so that ranks whose gradients come in another order still reduce the same things together.
    while (next_bucket_ < buckets_.size() && buckets_[next_bucket_].missing == 0) {
      start(*buckets_[next_bucket_++].gradients);
    }
  }

  /// The unit of these gradients is done with its backward.
  void close(FlatGradient& flat) {
    if (!sync_ || !flat.pending() || flat.reduction() != Reduction::Idle) return;
    // One reduction in flight bounds the memory to one unit's whole gradients besides those being made.
    if (!policy_.find_unused_parameters && !running_.empty()) finish_oldest();
    start(flat);
  }

  /// The backward pass is over: reduces what is left and waits for everything.
  void end_pass() {
    if (!sync_) return;
    for (; next_bucket_ < buckets_.size(); ++next_bucket_) {
      auto& bucket = *buckets_[next_bucket_].gradients;
      if (bucket.pending() && bucket.reduction() == Reduction::Idle) start(bucket);
    }
    for (auto& flat : flats_) {
      if (flat->pending() && flat->reduction() == Reduction::Idle && !started(*flat)) start(*flat);
    }
    if (policy_.find_unused_parameters) agree_on_used();
    while (!running_.empty()) finish_oldest();
    for (auto* flat : all()) {  // what came late
      if (flat->has_any_gradient()) start(*flat);
    }
    while (!running_.empty()) finish_oldest();
    started_.clear();
    rebuild_due_ = !rebuilt_ && !buckets_.empty();
  }

  /// Gives the gradients that wait in host memory to the leaves.
  void hand_over() {
    for (auto* flat : all()) flat->hand_over();
  }

  /// Waits for what is running and forgets what was not reduced, after a pass that failed.
  void reset() {
    while (!running_.empty()) finish_oldest();
    for (auto* flat : all()) flat->drop();
    started_.clear();
  }

  /// The replicated parameters' buckets, in the order in which they are reduced.
  std::vector<const FlatGradient*> buckets() const {
    std::vector<const FlatGradient*> result;
    for (const auto& bucket : buckets_) result.push_back(bucket.gradients.get());
    return result;
  }

 private:
  struct Route {
    FlatGradient* flat = nullptr;
    std::size_t index = 0;
  };
  struct Bucket {
    std::unique_ptr<FlatGradient> gradients;
    std::vector<bool> seen;   ///< in this pass, per slot
    std::size_t missing = 0;  ///< of them
  };

  std::vector<FlatGradient*> all() const {
    std::vector<FlatGradient*> result;
    for (const auto& bucket : buckets_) result.push_back(bucket.gradients.get());
    for (const auto& flat : flats_) result.push_back(flat.get());
    return result;
  }

  bool started(const FlatGradient& flat) const {
    return std::find(started_.begin(), started_.end(), &flat) != started_.end();
  }

  void start(FlatGradient& flat) {
    for (auto* older : running_) older->advance();
    flat.start(over_copies_);
    running_.push_back(&flat);
    started_.push_back(&flat);
  }

  void finish_oldest() {
    auto* flat = running_.front();
    running_.pop_front();
    flat->finish();
  }

  void finish_through(FlatGradient* flat) {
    while (flat->reduction() != Reduction::Idle) finish_oldest();
  }

  /// A parameter that any rank used has a gradient on all.
  void agree_on_used() {
    auto used = torch::zeros({static_cast<std::int64_t>(routes_.size())}, torch::kInt32);
    auto* flags = used.mutable_data_ptr<std::int32_t>();
    for (std::size_t i = 0; i < routes_.size(); ++i) flags[i] = routes_[i].flat->has_gradient(routes_[i].index);
    const auto device = routes_.front().flat->slots().front().parameter.device();
    auto sum = used.to(device);
    groups_.world.all_reduce(sum, "which parameters were used").wait();
    used.copy_(sum);
    for (std::size_t i = 0; i < routes_.size(); ++i) {
      if (flags[i] > 0) routes_[i].flat->set_used(routes_[i].index);
    }
  }

  /// Makes buckets in the order in which gradients came in the first pass on rank 0.
  void rebuild() {
    rebuilt_ = true;
    rebuild_due_ = false;
    hand_over();
    std::vector<std::int64_t> order;
    std::vector<bool> known(slots_.size(), false);
    for (std::int64_t i = static_cast<std::int64_t>(slots_.size()); i-- > 0;) ready_order_.push_back(i);
    for (const auto i : ready_order_) {
      if (!known[static_cast<std::size_t>(i)]) order.push_back(i);
      known[static_cast<std::size_t>(i)] = true;
    }
    ready_order_.clear();
    auto shared = torch::tensor(order, torch::kInt64).to(slots_.front().parameter.device());
    groups_.world.broadcast(shared, "order of gradients").wait();
    shared = shared.cpu();
    make_buckets({shared.data_ptr<std::int64_t>(), shared.data_ptr<std::int64_t>() + shared.numel()});
  }

  /// Buckets of one dtype each, over the replicated slots in `order`; nothing may be collected.
  void make_buckets(const std::vector<std::int64_t>& order) {
    buckets_.clear();
    std::map<std::pair<at::ScalarType, std::optional<at::ScalarType>>, std::vector<std::size_t>> by_dtype;
    for (const auto i : order) {
      const auto slot = static_cast<std::size_t>(i);
      by_dtype[{slots_[slot].leaf.scalar_type(), dtypes_[slot]}].push_back(slot);
    }
    for (const auto& [dtype, members] : by_dtype) {
      std::vector<std::int64_t> bytes;
      for (const auto slot : members) bytes.push_back(static_cast<std::int64_t>(slots_[slot].leaf.nbytes()));
      for (const auto& part : assign_buckets(bytes, policy_.first_bucket_bytes, policy_.bucket_bytes)) {
        std::vector<GradientSlot> slots;
        std::vector<std::vector<std::int64_t>> shapes;
        for (const auto i : part) {
          slots.push_back(slots_[members[i]]);
          shapes.push_back(slots.back().parameter.sizes().vec());
        }
        auto gradients =
            std::make_unique<FlatGradient>(std::move(slots), make_flat_layout(shapes, 1), groups_.replicated(),
                                           FlatGradient::Options{.label = "bucket " + std::to_string(buckets_.size()),
                                                                 .reduce_dtype = dtype.second,
                                                                 .on_host = policy_.offload.gradients,
                                                                 .always_used = policy_.find_unused_parameters});
        for (std::size_t i = 0; i < part.size(); ++i) {
          routes_[first_replicated_ + members[part[i]]] = {gradients.get(), i};
        }
        buckets_.push_back({std::move(gradients), {}, 0});
      }
    }
  }

  Groups groups_;
  Policy policy_;
  std::vector<Route> routes_;  ///< flats' slots, then the replicated ones
  std::vector<std::unique_ptr<FlatGradient>> flats_;
  std::vector<GradientSlot> slots_;                    ///< replicated
  std::vector<std::optional<at::ScalarType>> dtypes_;  ///< to reduce them in
  std::size_t first_replicated_ = SIZE_MAX;
  std::vector<Bucket> buckets_;
  std::size_t next_bucket_ = 0;
  std::deque<FlatGradient*> running_;      ///< reductions in flight, oldest first
  std::vector<FlatGradient*> started_;     ///< in this pass
  std::vector<std::int64_t> ready_order_;  ///< of the replicated slots, in the first reduced pass
  bool rebuilt_ = false, rebuild_due_ = false;
  bool sync_ = true, over_copies_ = true;
};

}  // namespace sealift::train
