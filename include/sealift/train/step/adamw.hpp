// SPDX-License-Identifier: Apache-2.0
// AdamW in one pass over memory: torch::optim::AdamW with LibTorch's fused kernel in place of its twelve small ones.
// A drop-in optimizer over `Parallel::shards()`; options, groups, schedulers and checkpointed state are those of its
// base.
// Moments may stay in host memory, which saves 8 bytes per fp32 parameter on the device for two copies a step; they
// pass through the device beside the steps of others (visit_device.hpp).
#pragma once

#include <sealift/train/bodies.hpp>
#include <sealift/train/step/visit_device.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace sealift::train {

/// Where `FusedAdamW` keeps its moments.
enum class Moments {
  WithParameter,  ///< on the parameter's device
  OnHost  ///< in host memory, pinned for a parameter on an accelerator; a step has three parameters' on the device
};

/// Same results as torch::optim::AdamW to rounding. A parameter on the host is stepped there.
class FusedAdamW : public torch::optim::AdamW {
 public:
  explicit FusedAdamW(std::vector<at::Tensor> parameters, torch::optim::AdamWOptions defaults = {},
                      Moments moments = Moments::WithParameter);

  /// With groups of parameters, each with its own AdamWOptions or the defaults.
  explicit FusedAdamW(const std::vector<torch::optim::OptimizerParamGroup>& groups,
                      torch::optim::AdamWOptions defaults = {}, Moments moments = Moments::WithParameter);

  /// Steps every parameter that has a gradient; returns the loss of `closure`, if given.
  SEALIFT_BODY at::Tensor step(LossClosure closure = nullptr) override;

  /// The number of moments copied to or from the host since construction.
  std::int64_t copies() const { return copies_; }

 protected:
  /// Whether the moments of `parameter` are copied for a step; a test without a device overrides it.
  virtual bool streams(const at::Tensor& parameter) const { return moments_ == Moments::OnHost && !parameter.is_cpu(); }

  /// ... and may shuffle what streams do at once.
  virtual std::unique_ptr<SideStreams> make_streams(at::Device device) { return std::make_unique<SideStreams>(device); }

 private:
  /// Parameters of one group, device, dtype and step number.
  struct Batch {
    std::vector<at::Tensor> parameters, gradients, exp_avgs, exp_avg_sqs, max_exp_avg_sqs;

    void add(const at::Tensor& parameter, const at::Tensor& exp_avg, const at::Tensor& exp_avg_sq,
             const at::Tensor& max_exp_avg_sq, bool amsgrad);

    /// Step number `number`, counted from 1.
    void step(std::int64_t number, const torch::optim::AdamWOptions& options);
  };

  /// The state of `parameter`, its moments on the right device; a loaded checkpoint may have left them on another.
  torch::optim::AdamWParamState& state_of(const at::Tensor& parameter, bool amsgrad);

  /// The step of `parameter` on copies of its moments.
  Visit visit(const at::Tensor& parameter, torch::optim::AdamWParamState& state,
              const torch::optim::AdamWOptions& options);

  Moments moments_;
  std::int64_t copies_ = 0;
  std::map<std::string, std::unique_ptr<SideStreams>> streams_;  ///< by device
};

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/step/adamw_inl.hpp>
#endif
