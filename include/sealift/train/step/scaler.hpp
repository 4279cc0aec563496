// SPDX-License-Identifier: Apache-2.0
// Loss scaling for fp16: keeps small gradients from vanishing, and skips the steps in which large ones overflowed.
// scale(loss).backward() -> [unscale_ -> clip] -> step(optimizer) -> update(), with the rules and names of
// torch.amp.GradScaler.
// An overflow is seen only by the rank that holds the element, so ranks combine what they found *before* they decide:
// all skip the step or none, and the scale stays the same on all of them.
#pragma once

#include <sealift/train/bodies.hpp>
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
  explicit GradScaler(Parallel& parallel, GradScalerOptions options = {});

  /// loss * scale, in the loss's dtype.
  at::Tensor scale(const at::Tensor& loss) const { return options_.enabled ? loss * state_.scale : loss; }

  /// Divides the gradients of the optimizer's parameters by the scale and finds out whether any rank's overflowed. Call
  /// it to clip before `step`, which calls it otherwise; once per optimizer and update. Waits for no device; `step`
  /// does. Collective over the world.
  void unscale_(torch::optim::Optimizer& optimizer);

  /// Steps the optimizer unless a gradient of any rank overflowed; whether it stepped. Collective as `unscale_`.
  bool step(torch::optim::Optimizer& optimizer);

  /// Ends the iteration: shrinks the scale if any step was skipped, grows it after `growth_interval` good ones. The
  /// rules are those of at::_amp_update_scale_, which never lets the scale grow to infinity in float.
  void update();

  /// 1 when disabled.
  double get_scale() const { return options_.enabled ? state_.scale : 1; }

  const GradScalerOptions& options() const { return options_; }
  const GradScalerState& state() const { return state_; }

  /// Continues from a checkpoint; between `update` and the next `scale`.
  void load_state(const GradScalerState& state);

 private:
  /// What was found of one optimizer since the last update.
  struct Found {
    at::Tensor ranks;  ///< [1], on how many an element overflowed; read late, so that clipping is issued meanwhile
    bool stepped = false;
    std::optional<bool> known{};

    bool overflowed();
  };

  Collectives world_;
  at::Device device_;
  GradScalerOptions options_;
  GradScalerState state_;
  std::unordered_map<torch::optim::Optimizer*, Found> found_inf_;
};

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/step/scaler_inl.hpp>
#endif
