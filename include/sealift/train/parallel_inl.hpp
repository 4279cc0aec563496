// SPDX-License-Identifier: Apache-2.0
// The bodies of parallel.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/parallel.hpp>

namespace sealift::train {

SEALIFT_BODY Parallel::Parallel(std::shared_ptr<Session> session, std::vector<ShardedParameter> parameters,
                                std::vector<std::string> warnings, std::vector<std::string> notes)
    : session_(std::move(session)),
      parameters_(std::move(parameters)),
      warnings_(std::move(warnings)),
      notes_(std::move(notes)) {
  for (const auto& parameter : parameters_) {
    if (parameter.shard.requires_grad()) shards_.push_back({parameter.name, parameter.shard});
  }
}

SEALIFT_BODY std::vector<at::Tensor> Parallel::shards() const {
  std::vector<at::Tensor> tensors;
  for (const auto& shard : shards_) tensors.push_back(shard.tensor);
  return tensors;
}

SEALIFT_BODY void Parallel::check_optimizer(torch::optim::Optimizer& optimizer) const {
  std::unordered_set<at::TensorImpl*> known;
  for (const auto& shard : shards_) known.insert(shard.tensor.unsafeGetTensorImpl());
  for (auto& group : optimizer.param_groups()) {
    for (const auto& tensor : group.params()) {
      TORCH_CHECK(known.contains(tensor.unsafeGetTensorImpl()), "the optimizer steps a tensor of shape ",
                  tensor.sizes(), " that is not one of this model's ", shards_.size(),
                  " shards; make the optimizer after parallelize(), from Parallel::shards()");
    }
  }
}

SEALIFT_BODY void Parallel::set_micro_batch(std::int64_t micro, std::int64_t micro_batches) {
  TORCH_CHECK(micro >= 0 && micro < micro_batches, "micro-batch ", micro, " of ", micro_batches,
              "; expected a number from 0 to ", micro_batches - 1);
  const auto& policy = session_->policy;
  const bool last = micro + 1 == micro_batches;
  if (micro == 0) session_->reducer.drop();  // what a step that was cut short has left
  session_->pass = {.reduce = last || policy.reduce_every_micro_batch,
                    .over_copies = last || !policy.defer_all_reduce,
                    .keep = session_->keep_gathered && micro_batches > 1,
                    .first = micro == 0,
                    .last = last};
}

SEALIFT_BODY void Parallel::set_reshard_after_backward(bool reshard) {
  session_->pass.keep = !reshard;
  session_->pass.last = reshard;
}

SEALIFT_BODY void Parallel::set_gradient_divide_factor(double factor) {
  session_->reducer.set_divisor(factor);
  if (session_->groups.world.size() == 1) divide_alone(factor);
}

SEALIFT_BODY void Parallel::set_forward_prefetch(const std::string& path, const std::vector<std::string>& next) {
  unit(path).set_forward_prefetch(numbers(next));
}

SEALIFT_BODY void Parallel::set_backward_prefetch(const std::string& path, const std::vector<std::string>& next) {
  unit(path).set_backward_prefetch(numbers(next));
}

SEALIFT_BODY Parallel::Whole::Whole(std::shared_ptr<Session> session) : session_(std::move(session)) {
  const bool in_backward = session_->in_backward;
  if (session_->memory) made_ = session_->memory->made();
  // What was gathered before may be older than the optimizer's last step.
  if (session_->forwards == 0 && !in_backward && session_->holds == 0) ++session_->epoch;
  for (auto& unit : session_->units) {
    for (auto& flat : unit->flats()) {
      if (!flat->has_memory()) gathered_.push_back(flat.get());
      in_backward ? flat->unshard() : flat->unshard(session_->epoch);
    }
  }
  ++session_->holds;
}

SEALIFT_BODY Parallel::Whole::~Whole() {
  if (--session_->holds > 0) return;
  for (auto* flat : gathered_) flat->reshard();
  if (session_->memory) session_->memory->release(made_);
}

SEALIFT_BODY std::vector<FlatMemory> Parallel::flat_memory() const {
  return session_->memory ? session_->memory->all() : std::vector<FlatMemory>{};
}

SEALIFT_BODY void Parallel::observe_flat_memory(
    std::function<void(const void* data, std::size_t bytes)> observer) const {
  TORCH_CHECK(session_->memory, "flats have no buffers of their own; set Policy::stable_addresses");
  session_->memory->observe(std::move(observer));
}

SEALIFT_BODY Unit& Parallel::unit(const std::string& path) {
  for (auto& candidate : session_->units) {
    if (candidate->path() == path) return *candidate;
  }
  TORCH_CHECK(false, "there is no unit '", path, "'; see Parallel::units()");
}

SEALIFT_BODY void Parallel::divide_alone(double factor) {
  if (alone_) {
    *alone_ = factor;
    return;
  }
  if (factor == 0) return;
  alone_ = std::make_shared<double>(factor);
  for (const auto& [name, parameter] : shards_) {
    parameter.register_hook([divisor = alone_](const at::Tensor& gradient) {
      return *divisor > 0 ? gradient / *divisor : at::Tensor();  // undefined: as it was
    });
  }
}

SEALIFT_BODY std::vector<std::size_t> Parallel::numbers(const std::vector<std::string>& paths) {
  std::vector<std::size_t> result;
  for (const auto& path : paths) result.push_back(unit(path).number());
  return result;
}

}  // namespace sealift::train
