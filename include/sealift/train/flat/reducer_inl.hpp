// SPDX-License-Identifier: Apache-2.0
// The bodies of reducer.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/flat/reducer.hpp>

#include <cmath>

namespace sealift::train {

SEALIFT_BODY Reducer::Reducer(Groups groups, const Policy& policy, std::shared_ptr<detail::SteadyBuffers> memory)
    : groups_(std::move(groups)), policy_(policy), memory_(std::move(memory)) {
  if (policy.compression.gradients == GradientCompression::PowerSgd) {
    power_sgd_ = std::make_shared<PowerSgd>(policy.compression.power_sgd);
  }
}

SEALIFT_BODY std::size_t Reducer::add(std::unique_ptr<FlatGradient> flat) {
  flats_.push_back(std::move(flat));
  return flats_.size() - 1;
}

SEALIFT_BODY std::size_t Reducer::add_replicated(std::vector<GradientSlot> slots,
                                                 std::vector<std::optional<at::ScalarType>> dtypes,
                                                 std::vector<Groups> copies) {
  slots_ = std::move(slots);
  dtypes_ = std::move(dtypes);
  copies_ = std::move(copies);
  places_.resize(slots_.size());
  make_buckets(bucket_order({}, slots_.size()));  // the first pass shows in which order gradients really come
  return flats_.size();
}

SEALIFT_BODY void Reducer::begin_pass(bool sync, bool over_copies) {
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

SEALIFT_BODY void Reducer::collect(ParameterId id) {
  auto& gradients = gradients_of(id);
  if (gradients.reduction() != Reduction::Idle) finish_through(gradients);
  gradients.collect(slot_of(id));
  collected(id);
}

SEALIFT_BODY bool Reducer::collect_product(ParameterId id, const at::Tensor& left, const at::Tensor& right) {
  auto& gradients = gradients_of(id);
  if (gradients.reduction() != Reduction::Idle) finish_through(gradients);
  return gradients.collect_product(slot_of(id), left, right);
}

SEALIFT_BODY void Reducer::has_all(ParameterId id) {
  if (gradients_of(id).has_gradient(slot_of(id))) collected(id);
}

SEALIFT_BODY void Reducer::collected(ParameterId id) {
  // Whole gradients that are not summed over copies yet are only collected.
  if (!is_replicated(id.flat) || !sync_ || !over_copies_) return;
  // Ranks that use different parameters fill buckets at different times, between other flats.
  if (policy_.find_unused_parameters && !flats_.empty()) return;
  if (!rebuilt_) ready_order_.push_back(static_cast<std::int64_t>(id.index));
  const auto slot = slot_of(id);
  auto& bucket = buckets_[places_[id.index].bucket];
  if (!bucket.seen[slot]) --bucket.missing;
  bucket.seen[slot] = true;
  // Strictly in order, so that ranks whose gradients come in another order still reduce the same buckets together.
  while (next_bucket_ < buckets_.size() && buckets_[next_bucket_].missing == 0) {
    start(*buckets_[next_bucket_++].gradients);
  }
}

SEALIFT_BODY void Reducer::close(std::size_t flat) {
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

SEALIFT_BODY void Reducer::end_pass() {
  if (sync_) reduce_rest();
  for (auto* gradients : all()) gradients->show_means();
}

SEALIFT_BODY void Reducer::set_marks() {
  for (auto* gradients : all()) gradients->set_marks();
}

SEALIFT_BODY void Reducer::set_divisor(double divisor) {
  TORCH_CHECK(divisor >= 0 && std::isfinite(divisor), "gradients are to be divided by ", divisor,
              "; expected a finite number above 0, or 0 for the world size");
  divisor_ = divisor;
}

SEALIFT_BODY void Reducer::drop() {
  for (auto* gradients : all()) gradients->drop();
  holds_sums_ = false;
}

SEALIFT_BODY void Reducer::flush() {
  for (auto* gradients : all()) gradients->flush();
}

SEALIFT_BODY void Reducer::reset() {
  while (!running_.empty()) finish_oldest();
  drop();
  started_.clear();
}

SEALIFT_BODY std::vector<const FlatGradient*> Reducer::buckets() const {
  std::vector<const FlatGradient*> result;
  for (const auto& bucket : buckets_) result.push_back(bucket.gradients.get());
  return result;
}

SEALIFT_BODY FlatGradient& Reducer::gradients_of(ParameterId id) const {
  return is_replicated(id.flat) ? *buckets_[places_[id.index].bucket].gradients : *flats_[id.flat];
}

SEALIFT_BODY std::vector<ParameterId> Reducer::ids() const {
  std::vector<ParameterId> result;
  for (std::size_t flat = 0; flat <= flats_.size(); ++flat) {
    const auto count = is_replicated(flat) ? slots_.size() : flats_[flat]->slots().size();
    for (std::size_t index = 0; index < count; ++index) result.push_back({flat, index});
  }
  return result;
}

SEALIFT_BODY std::vector<FlatGradient*> Reducer::all() const {
  std::vector<FlatGradient*> result;
  for (const auto& bucket : buckets_) result.push_back(bucket.gradients.get());
  for (const auto& flat : flats_) result.push_back(flat.get());
  return result;
}

SEALIFT_BODY bool Reducer::is_due(const FlatGradient& gradients) const {
  const bool possible = over_copies_ || gradients.layout().shards > 1;
  return possible && gradients.needs_reduction() && gradients.reduction() == Reduction::Idle;
}

SEALIFT_BODY bool Reducer::started(const FlatGradient& gradients) const {
  return std::find(started_.begin(), started_.end(), &gradients) != started_.end();
}

SEALIFT_BODY void Reducer::start(FlatGradient& gradients) {
  for (auto* older : running_) older->advance();
  gradients.start(over_copies_);
  running_.push_back(&gradients);
  started_.push_back(&gradients);
}

SEALIFT_BODY void Reducer::reduce_rest() {
  for (; next_bucket_ < buckets_.size(); ++next_bucket_) {
    auto& bucket = *buckets_[next_bucket_].gradients;
    if (is_due(bucket)) start(bucket);
  }
  for (auto& flat : flats_) {
    if (is_due(*flat) && !started(*flat)) start(*flat);
  }
  if (!policy_.find_unused_parameters) {
    while (!running_.empty()) finish_oldest();
    for (auto* gradients : all()) {  // gradients that came after their buffer was reduced
      if (gradients->has_any_gradient() && is_due(*gradients)) start(*gradients);
    }
  }
  finish_all();
  for (auto* gradients : all()) gradients->land();
  started_.clear();
  if (power_sgd_ && over_copies_) power_sgd_->count_iteration();
  rebuild_due_ = !rebuilt_ && !buckets_.empty() && over_copies_;
}

SEALIFT_BODY void Reducer::finish_oldest() {
  auto* gradients = running_.front();
  running_.pop_front();
  policy_.find_unused_parameters ? gradients->put_aside() : gradients->finish(divisor());
}

SEALIFT_BODY void Reducer::finish_through(const FlatGradient& gradients) {
  while (gradients.reduction() != Reduction::Idle) finish_oldest();
}

SEALIFT_BODY void Reducer::finish_all() {
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

SEALIFT_BODY void Reducer::rebuild() {
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

SEALIFT_BODY void Reducer::make_buckets(const std::vector<std::int64_t>& order) {
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

}  // namespace sealift::train
