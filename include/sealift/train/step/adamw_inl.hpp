// SPDX-License-Identifier: Apache-2.0
// The bodies of adamw.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/comm/device.hpp>
#include <sealift/train/step/adamw.hpp>

namespace sealift::train {

SEALIFT_BODY FusedAdamW::FusedAdamW(std::vector<at::Tensor> parameters, torch::optim::AdamWOptions defaults,
                                    Moments moments)
    : AdamW(std::move(parameters), std::move(defaults)), moments_(moments) {}

SEALIFT_BODY FusedAdamW::FusedAdamW(const std::vector<torch::optim::OptimizerParamGroup>& groups,
                                    torch::optim::AdamWOptions defaults, Moments moments)
    : AdamW(groups, std::move(defaults)), moments_(moments) {}

SEALIFT_BODY at::Tensor FusedAdamW::step(LossClosure closure) {
  at::Tensor loss;
  if (closure) {
    at::AutoGradMode grad(true);
    loss = closure();
  }
  at::NoGradGuard no_grad;
  std::map<std::string, std::pair<at::Device, std::vector<Visit>>> streamed;  // by device
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
        const auto device = parameter.device();
        streamed.try_emplace(device.str(), device, std::vector<Visit>{})
            .first->second.second.push_back(visit(parameter, state, options));
      } else {
        batches[{parameter.device().str(), parameter.scalar_type(), state.step()}].add(
            parameter, state.exp_avg(), state.exp_avg_sq(), state.max_exp_avg_sq(), options.amsgrad());
      }
    }
    for (auto& [key, batch] : batches) batch.step(std::get<2>(key), options);
  }
  for (auto& [name, visits] : streamed) {
    auto& streams = streams_[name];
    if (!streams) streams = make_streams(visits.first);
    visit_device(*streams, visits.first, visits.second);
  }
  return loss;
}

SEALIFT_BODY void FusedAdamW::Batch::add(const at::Tensor& parameter, const at::Tensor& exp_avg,
                                         const at::Tensor& exp_avg_sq, const at::Tensor& max_exp_avg_sq, bool amsgrad) {
  TORCH_CHECK(parameter.is_non_overlapping_and_dense(), "FusedAdamW got a parameter of shape ", parameter.sizes(),
              " and strides ", parameter.strides(), "; it steps dense ones only, so make it contiguous()");
  auto gradient = parameter.grad();
  TORCH_CHECK(gradient.layout() == at::kStrided,
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

SEALIFT_BODY void FusedAdamW::Batch::step(std::int64_t number, const torch::optim::AdamWOptions& options) {
  const auto count =
      torch::full({}, static_cast<double>(number), torch::dtype(torch::kFloat32).device(parameters.front().device()));
  const std::vector<at::Tensor> counts(parameters.size(), count);
  const auto [beta1, beta2] = options.betas();
  at::_fused_adamw_(parameters, gradients, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, counts, options.lr(), beta1, beta2,
                    options.weight_decay(), options.eps(), options.amsgrad(), /*maximize=*/false);
}

SEALIFT_BODY torch::optim::AdamWParamState& FusedAdamW::state_of(const at::Tensor& parameter, bool amsgrad) {
  auto& slot = state_[parameter.unsafeGetTensorImpl()];
  if (!slot) slot = std::make_unique<torch::optim::AdamWParamState>();
  auto& state = static_cast<torch::optim::AdamWParamState&>(*slot);
  const bool on_host = moments_ == Moments::OnHost;
  const auto settle = [&](at::Tensor& moment) {
    const auto device = on_host ? at::Device(at::kCPU) : parameter.device();
    const bool pinned = on_host && is_accelerator(parameter.device());
    const bool at_home = moment.defined() && moment.device() == device && moment.strides() == parameter.strides();
    if (at_home && (!pinned || moment.is_pinned())) return;
    auto home =
        at::empty_like(parameter, parameter.options().requires_grad(false).device(device).pinned_memory(pinned));
    moment.defined() ? home.copy_(moment) : home.zero_();
    moment = std::move(home);
  };
  settle(state.exp_avg());
  settle(state.exp_avg_sq());
  if (amsgrad) settle(state.max_exp_avg_sq());
  return state;
}

SEALIFT_BODY Visit FusedAdamW::visit(const at::Tensor& parameter, torch::optim::AdamWParamState& state,
                                     const torch::optim::AdamWOptions& options) {
  Visit result{.homes = {state.exp_avg(), state.exp_avg_sq()}};
  if (options.amsgrad()) result.homes.push_back(state.max_exp_avg_sq());
  copies_ += 2 * static_cast<std::int64_t>(result.homes.size());
  auto batch = std::make_shared<Batch>();
  // Everything is checked before the first copy; the moments are the homes, until their copies are there.
  batch->add(parameter, state.exp_avg(), state.exp_avg_sq(), state.max_exp_avg_sq(), options.amsgrad());
  result.work = [batch, number = state.step(), &options](const std::vector<at::Tensor>& moments) {
    batch->exp_avgs = {moments[0]};
    batch->exp_avg_sqs = {moments[1]};
    if (moments.size() > 2) batch->max_exp_avg_sqs = {moments[2]};
    batch->step(number, options);
  };
  return result;
}

}  // namespace sealift::train
