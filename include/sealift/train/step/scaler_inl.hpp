// SPDX-License-Identifier: Apache-2.0
// The bodies of scaler.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/step/scaler.hpp>

namespace sealift::train {

SEALIFT_BODY GradScaler::GradScaler(Parallel& parallel, GradScalerOptions options)
    : world_(parallel.groups().world),
      device_(detail::exchange_device(parallel)),
      options_(options),
      state_{.scale = options.init_scale} {
  TORCH_CHECK(options.init_scale > 0, "init_scale is ", options.init_scale, "; expected above 0");
  TORCH_CHECK(options.growth_factor > 1, "growth_factor is ", options.growth_factor, "; expected above 1");
  TORCH_CHECK(options.backoff_factor > 0 && options.backoff_factor < 1, "backoff_factor is ", options.backoff_factor,
              "; expected between 0 and 1");
  TORCH_CHECK(options.growth_interval >= 1, "growth_interval is ", options.growth_interval, "; expected at least 1");
}

SEALIFT_BODY void GradScaler::unscale_(torch::optim::Optimizer& optimizer) {
  if (!options_.enabled) return;
  TORCH_CHECK(!found_inf_.contains(&optimizer),
              "this optimizer's gradients were unscaled or stepped already; call update() once after each step");
  at::NoGradGuard no_grad;
  detail::Batches batches;
  for (const auto& group : optimizer.param_groups()) {
    for (const auto& parameter : group.params()) {
      if (parameter.grad().defined()) batches.add(parameter.grad());
    }
  }
  // A sum above zero means that some rank overflowed; a rank with nothing to check adds zero.
  auto found = torch::zeros({1}, torch::dtype(torch::kFloat32).device(device_));
  for (const auto& [key, gradients] : batches) {
    const auto options = torch::dtype(torch::kFloat32).device(gradients.front().device());
    auto here = torch::zeros({1}, options);
    at::_amp_foreach_non_finite_check_and_unscale_(gradients, here, torch::full({1}, 1 / state_.scale, options));
    found += here.to(device_);
  }
  world_.all_reduce(found).wait();
  found_inf_[&optimizer] = {.ranks = found};
}

SEALIFT_BODY bool GradScaler::step(torch::optim::Optimizer& optimizer) {
  if (options_.enabled) {
    if (!found_inf_.contains(&optimizer)) unscale_(optimizer);
    auto& found = found_inf_.at(&optimizer);
    TORCH_CHECK(!std::exchange(found.stepped, true),
                "step() was called for this optimizer already; call update() once after each step");
    if (found.overflowed()) return false;
  }
  optimizer.step();
  return true;
}

SEALIFT_BODY void GradScaler::update() {
  if (!options_.enabled) return;
  TORCH_CHECK(!found_inf_.empty(), "update() without step() or unscale_() before; call it once after each step");
  const bool overflowed =
      std::any_of(found_inf_.begin(), found_inf_.end(), [](auto& found) { return found.second.overflowed(); });
  found_inf_.clear();
  if (overflowed) {
    state_ = {.scale = state_.scale * options_.backoff_factor};
  } else if (++state_.growth_tracker >= options_.growth_interval) {
    const double grown = state_.scale * options_.growth_factor;
    state_ = {.scale = std::isfinite(static_cast<float>(grown)) ? grown : state_.scale};
  }
}

SEALIFT_BODY void GradScaler::load_state(const GradScalerState& state) {
  TORCH_CHECK(found_inf_.empty(), "load_state() between step() and update(); call it between iterations");
  TORCH_CHECK(state.scale > 0 && std::isfinite(state.scale), "the checkpoint's scale is ", state.scale,
              "; expected a finite number above 0");
  state_ = state;
}

SEALIFT_BODY bool GradScaler::Found::overflowed() {
  if (!known) known = ranks.item<float>() > 0;
  return *known;
}

}  // namespace sealift::train
