// SPDX-License-Identifier: Apache-2.0
// AdamW in one pass over memory: torch::optim::AdamW with LibTorch's fused kernel in place of its twelve small ones.
// A drop-in optimizer over `Parallel::shards()`; options, groups, schedulers and checkpointed state are those of its
// base.
// Moments may stay in host memory, which saves 8 bytes per fp32 parameter on the device for two copies a step.
#pragma once

#include <torch/torch.h>

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
  OnHost          ///< in host memory, pinned for a CUDA parameter; a step copies one parameter's at a time
};

/// Same results as torch::optim::AdamW to rounding. A parameter on the host is stepped there.
class FusedAdamW : public torch::optim::AdamW {
 public:
  explicit FusedAdamW(std::vector<at::Tensor> parameters, torch::optim::AdamWOptions defaults = {},
                      Moments moments = Moments::WithParameter)
      : AdamW(std::move(parameters), std::move(defaults)), moments_(moments) {}

  /// With groups of parameters, each with its own AdamWOptions or the defaults.
  explicit FusedAdamW(const std::vector<torch::optim::OptimizerParamGroup>& groups,
                      torch::optim::AdamWOptions defaults = {}, Moments moments = Moments::WithParameter)
      : AdamW(groups, std::move(defaults)), moments_(moments) {}

  /// Steps every parameter that has a gradient; returns the loss of `closure`, if given.
  at::Tensor step(LossClosure closure = nullptr) override {
    at::Tensor loss;
    if (closure) {
      at::AutoGradMode grad(true);
      loss = closure();
    }
    at::NoGradGuard no_grad;
    std::int64_t streamed_on = -1;
    for (auto& group : param_groups_) {
      const auto& options = static_cast<const torch::optim::AdamWOptions&>(group.options());
      // The kernel needs one device and dtype, and the step as a tensor on it: one per batch, not per parameter.
      std::map<std::tuple<std::string, at::ScalarType, std::int64_t>, Batch> batches;
      for (const auto& parameter : group.params()) {
        if (!parameter.grad().defined()) continue;
        auto& state = state_of(parameter, options.amsgrad());
        state.step(state.step() + 1);
        if (parameter.numel() == 0) continue;
        if (streams(parameter)) {
          step_streamed(parameter, state, options);
          if (parameter.is_cuda()) streamed_on = parameter.device().index();
        } else {
          batches[{parameter.device().str(), parameter.scalar_type(), state.step()}].add(
              parameter, state.exp_avg(), state.exp_avg_sq(), state.max_exp_avg_sq(), options.amsgrad());
        }
      }
      for (auto& [key, batch] : batches) batch.step(std::get<2>(key), options);
    }
    // The host may read the moments next, for a checkpoint.
    if (streamed_on >= 0) torch::cuda::synchronize(streamed_on);
    return loss;
  }

  /// The number of moments copied to or from the host since construction.
  std::int64_t copies() const { return copies_; }

 protected:
  /// Whether the moments of `parameter` are copied for a step; a test without a device overrides it.
  virtual bool streams(const at::Tensor& parameter) const { return moments_ == Moments::OnHost && !parameter.is_cpu(); }

 private:
  /// Parameters of one group, device, dtype and step number.
  struct Batch {
    std::vector<at::Tensor> parameters, gradients, exp_avgs, exp_avg_sqs, max_exp_avg_sqs;

    void add(const at::Tensor& parameter, const at::Tensor& exp_avg, const at::Tensor& exp_avg_sq,
             const at::Tensor& max_exp_avg_sq, bool amsgrad) {
      TORCH_CHECK(parameter.is_non_overlapping_and_dense(), "FusedAdamW got a parameter of shape ", parameter.sizes(),
                  " and strides ", parameter.strides(), "; it steps dense ones only, so make it contiguous()");
      auto gradient = parameter.grad();
      TORCH_CHECK(
          gradient.layout() == at::kStrided,
          "FusedAdamW got a sparse gradient; it steps dense ones only, so make the embedding with sparse(false)");
      // The kernel reads raw memory: everything must have the parameter's dtype and strides.
      if (gradient.strides() != parameter.strides() || gradient.scalar_type() != parameter.scalar_type()) {
        gradient = at::empty_like(parameter).copy_(gradient);
      }
      parameters.push_back(parameter);
      gradients.push_back(std::move(gradient));
      exp_avgs.push_back(exp_avg);
      exp_avg_sqs.push_back(exp_avg_sq);
      if (amsgrad) max_exp_avg_sqs.push_back(max_exp_avg_sq);
    }

    /// Step number `number`, counted from 1.
    void step(std::int64_t number, const torch::optim::AdamWOptions& options) {
      const auto count = torch::full({}, static_cast<double>(number),
                                     torch::dtype(torch::kFloat32).device(parameters.front().device()));
      const std::vector<at::Tensor> counts(parameters.size(), count);
      const auto [beta1, beta2] = options.betas();
      at::_fused_adamw_(parameters, gradients, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, counts, options.lr(), beta1,
                        beta2, options.weight_decay(), options.eps(), options.amsgrad(), /*maximize=*/false);
    }
  };

  /// The state of `parameter`, its moments on the right device; a loaded checkpoint may have left them on another.
  torch::optim::AdamWParamState& state_of(const at::Tensor& parameter, bool amsgrad) {
    auto& slot = state_[parameter.unsafeGetTensorImpl()];
    if (!slot) slot = std::make_unique<torch::optim::AdamWParamState>();
    auto& state = static_cast<torch::optim::AdamWParamState&>(*slot);
    const bool on_host = moments_ == Moments::OnHost;
    const auto settle = [&](at::Tensor& moment) {
      const auto device = on_host ? at::Device(at::kCPU) : parameter.device();
      if (moment.defined() && moment.device() == device && moment.strides() == parameter.strides()) return;
      auto home = at::empty_like(parameter, parameter.options().requires_grad(false).device(device).pinned_memory(
                                                on_host && parameter.is_cuda()));
      moment.defined() ? home.copy_(moment) : home.zero_();
      moment = std::move(home);
    };
    settle(state.exp_avg());
    settle(state.exp_avg_sq());
    if (amsgrad) settle(state.max_exp_avg_sq());
    return state;
  }

  /// Copies the moments to the parameter's device, steps there, and copies them back.
  void step_streamed(const at::Tensor& parameter, torch::optim::AdamWParamState& state,
                     const torch::optim::AdamWOptions& options) {
    const auto bring = [&](const at::Tensor& moment) {
      if (!moment.defined()) return moment;
      ++copies_;
      return at::empty_like(parameter).copy_(moment, /*non_blocking=*/true);
    };
    const auto write_back = [&](at::Tensor& home, const at::Tensor& moment) {
      if (!moment.defined()) return;
      ++copies_;
      home.copy_(moment, /*non_blocking=*/true);
    };
    const auto exp_avg = bring(state.exp_avg());
    const auto exp_avg_sq = bring(state.exp_avg_sq());
    const auto max_exp_avg_sq = bring(options.amsgrad() ? state.max_exp_avg_sq() : at::Tensor());
    Batch batch;
    batch.add(parameter, exp_avg, exp_avg_sq, max_exp_avg_sq, options.amsgrad());
    batch.step(state.step(), options);
    write_back(state.exp_avg(), exp_avg);
    write_back(state.exp_avg_sq(), exp_avg_sq);
    write_back(state.max_exp_avg_sq(), max_exp_avg_sq);
  }

  Moments moments_;
  std::int64_t copies_ = 0;
};

}  // namespace sealift::train
