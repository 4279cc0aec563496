// SPDX-License-Identifier: Apache-2.0
// Loss scaling for fp16: keeps small gradients from vanishing, and skips the steps in which large ones overflowed.
// scale(loss).backward() -> [unscale_ -> clip] -> step(optimizer) -> update(), with the rules and names of
// torch.amp.GradScaler.
// An overflow is seen only by the rank that holds the element, so ranks combine what they found *before* they decide:
// all skip the step or none, and the scale stays the same on all of them.
#pragma once

#include <sealift/train/step/clip.hpp>

#include <unordered_map>

namespace sealift::train {

/// The settings of torch.amp.GradScaler, with its defaults.
struct GradScalerOptions {
  double init_scale = 65536;            ///< what the first loss is multiplied by
  double growth_factor = 2;             ///< of the scale after `growth_interval` steps without overflow
  double backoff_factor = 0.5;          ///< of the scale after an overflow
  std::int64_t growth_interval = 2000;  ///< in updates
  bool enabled = true;                  ///< false: as a program without a scaler
};

/// The state of a scaler, for a checkpoint.
struct GradScalerState {
  double scale = 0;
  std::int64_t growth_tracker = 0;  ///< updates without overflow since the scale changed

  bool operator==(const GradScalerState&) const = default;
};

/// One per rank; all ranks make the same calls.
class GradScaler {
 public:
  explicit GradScaler(Parallel& parallel, GradScalerOptions options = {})
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

  /// loss * scale, in the loss's dtype.
  at::Tensor scale(const at::Tensor& loss) const { return options_.enabled ? loss * state_.scale : loss; }

  /// Divides the gradients of the optimizer's parameters by the scale and finds out whether any rank's overflowed. Call
  /// it to clip before `step`, which calls it otherwise; once per optimizer and update. Waits for no device; `step`
  /// does. Collective over the world.
  void unscale_(torch::optim::Optimizer& optimizer) {
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

  /// Steps the optimizer unless a gradient of any rank overflowed; whether it stepped. Collective as `unscale_`.
  bool step(torch::optim::Optimizer& optimizer) {
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

  /// Ends the iteration: shrinks the scale if any step was skipped, grows it after `growth_interval` good ones. The
  /// rules are those of at::_amp_update_scale_, which never lets the scale grow to infinity in float.
  void update() {
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

  /// 1 when disabled.
  double get_scale() const { return options_.enabled ? state_.scale : 1; }

  const GradScalerOptions& options() const { return options_; }
  const GradScalerState& state() const { return state_; }

  /// Continues from a checkpoint; between `update` and the next `scale`.
  void load_state(const GradScalerState& state) {
    TORCH_CHECK(found_inf_.empty(), "load_state() between step() and update(); call it between iterations");
    TORCH_CHECK(state.scale > 0 && std::isfinite(state.scale), "the checkpoint's scale is ", state.scale,
                "; expected a finite number above 0");
    state_ = state;
  }

 private:
  /// What was found of one optimizer since the last update.
  struct Found {
    at::Tensor ranks;  ///< [1], on how many an element overflowed; read late, so that clipping is issued meanwhile
    bool stepped = false;
    std::optional<bool> known{};

    bool overflowed() {
      if (!known) known = ranks.item<float>() > 0;
      return *known;
    }
  };

  Collectives world_;
  at::Device device_;
  GradScalerOptions options_;
  GradScalerState state_;
  std::unordered_map<torch::optim::Optimizer*, Found> found_inf_;
};

}  // namespace sealift::train
