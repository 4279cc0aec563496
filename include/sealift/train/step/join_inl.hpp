// SPDX-License-Identifier: Apache-2.0
// The bodies of join.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/step/join.hpp>

namespace sealift::train {

SEALIFT_BODY Join::Join(Parallel& parallel, DivideBy divide_by)
    : parallel_(parallel), divide_by_(divide_by), mute_(parallel.silent()) {}

SEALIFT_BODY Join::~Join() {
  *mute_ = false;
  parallel_.set_gradient_divide_factor(0);
  for (auto& [parameter, hook] : hooks_) parameter.remove_hook(hook);
}

SEALIFT_BODY bool Join::next(std::int64_t batches) {
  TORCH_CHECK(batches >= 0, "Join::next() got ", batches, " batches; expected 0 when this rank has none left");
  auto& world = parallel_.groups().world;
  const auto own = torch::tensor({batches}, torch::kInt64);
  auto all = own.repeat({world.size()});
  world.all_gather(all, own, "batches of each rank").wait();
  here_ = batches;
  micro_batches_ = all.max().item<std::int64_t>();
  batches_ = all.sum().item<std::int64_t>();
  if (batches_ == 0) {
    *mute_ = false;
    parallel_.set_gradient_divide_factor(0);
    return false;
  }
  // Each loss is divided by the micro-batches of the step, so this makes the sum over them all a mean.
  const double mean = static_cast<double>(batches_) / static_cast<double>(micro_batches_);
  parallel_.set_gradient_divide_factor(divide_by_ == DivideBy::AllRanks ? 0 : mean);
  begin(0);
  return true;
}

SEALIFT_BODY bool Join::begin(std::int64_t micro) {
  parallel_.set_micro_batch(micro, micro_batches_);
  const bool has_data = micro < here_;
  if (!has_data && hooks_.empty()) listen();
  *mute_ = !has_data;
  return has_data;
}

SEALIFT_BODY void Join::listen() {
  const auto add = [&](const std::string& name, const at::Tensor& parameter) {
    if (!parameter.requires_grad() || parallel_.is_split(name)) return;
    hooks_.emplace_back(parameter, parameter.register_hook([mute = mute_](const at::Tensor& gradient) {
      return *mute ? at::zeros_like(gradient) : at::Tensor();  // undefined: as it was
    }));
  };
  for (const auto& unit : parallel_.units()) {
    for (const auto& flat : unit->flats()) {
      for (const auto& parameter : flat->parameters()) add(parameter.name, parameter.tensor);
    }
  }
  for (const auto& parameter : parallel_.parameters()) {
    if (parameter.replicated) add(parameter.name, parameter.shard);
  }
}

}  // namespace sealift::train
