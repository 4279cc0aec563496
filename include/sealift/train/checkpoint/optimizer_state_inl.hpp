// SPDX-License-Identifier: Apache-2.0
// The bodies of optimizer_state.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/checkpoint/optimizer_state.hpp>

#include <cmath>
#include <utility>

namespace sealift::train {

namespace detail {

/// Calls `field(name, value&)` for every hyper-parameter of `options`; returns the optimizer's name.
template <class Field>
std::string each_option(torch::optim::OptimizerOptions& options, Field field) {
  if (auto* adamw = dynamic_cast<torch::optim::AdamWOptions*>(&options)) {
    each_adam_option(*adamw, field);
    return "AdamW";
  }
  if (auto* adam = dynamic_cast<torch::optim::AdamOptions*>(&options)) {
    each_adam_option(*adam, field);
    return "Adam";
  }
  if (auto* sgd = dynamic_cast<torch::optim::SGDOptions*>(&options)) {
    field("lr", sgd->lr());
    field("momentum", sgd->momentum());
    field("dampening", sgd->dampening());
    field("weight_decay", sgd->weight_decay());
    field("nesterov", sgd->nesterov());
    return "SGD";
  }
  TORCH_CHECK(false, "checkpoints know the state of Adam, AdamW, SGD and classes derived from them; save this ",
              "optimizer's state yourself and pass no optimizer");
}

/// Calls `field(name, tensor&)` for every tensor of `state`; returns its step count, null if it has none.
template <class Field>
std::int64_t* each_state(torch::optim::OptimizerParamState& state, Field field) {
  if (auto* adamw = dynamic_cast<torch::optim::AdamWParamState*>(&state)) {
    each_adam_state(*adamw, field);
    return &adamw->step();
  }
  if (auto* adam = dynamic_cast<torch::optim::AdamParamState*>(&state)) {
    each_adam_state(*adam, field);
    return &adam->step();
  }
  if (auto* sgd = dynamic_cast<torch::optim::SGDParamState*>(&state)) {
    field("momentum_buffer", sgd->momentum_buffer());
    return nullptr;
  }
  TORCH_CHECK(false, "an optimizer keeps a state that is not Adam's, AdamW's or SGD's; see optimizer_state.hpp");
}

}  // namespace detail

SEALIFT_BODY std::string optimizer_kind(torch::optim::Optimizer& optimizer) {
  return detail::each_option(optimizer.defaults(), [](const char*, auto&) {});
}

SEALIFT_BODY std::vector<std::string> required_state(const std::string& kind) {
  if (kind == "SGD") return {"momentum_buffer"};
  return {"exp_avg", "exp_avg_sq"};
}

SEALIFT_BODY Hyperparameters hyperparameters(torch::optim::OptimizerOptions& options) {
  Hyperparameters values;
  detail::each_option(options, [&](const char* name, auto& value) { values[name] = static_cast<double>(value); });
  return values;
}

SEALIFT_BODY void set_hyperparameters(torch::optim::OptimizerOptions& options, const Hyperparameters& values) {
  detail::each_option(options, [&](const char* name, auto& value) {
    value = static_cast<std::remove_reference_t<decltype(value)>>(values.at(name));
  });
}

SEALIFT_BODY std::optional<ParameterState> parameter_state(torch::optim::Optimizer& optimizer,
                                                           const at::Tensor& shard) {
  const auto found = optimizer.state().find(shard.unsafeGetTensorImpl());
  if (found == optimizer.state().end()) return std::nullopt;
  ParameterState result;
  const auto* step = detail::each_state(*found->second, [&](const char* name, at::Tensor& tensor) {
    if (tensor.defined()) result.tensors.emplace_back(name, tensor);
  });
  if (step) result.step = *step;
  return result.tensors.empty() ? std::nullopt : std::optional(std::move(result));
}

SEALIFT_BODY void set_parameter_state(torch::optim::Optimizer& optimizer, const at::Tensor& shard,
                                      const std::optional<ParameterState>& state) {
  auto& slot = optimizer.state()[shard.unsafeGetTensorImpl()];
  if (!state) {
    optimizer.state().erase(shard.unsafeGetTensorImpl());
    return;
  }
  if (!slot) {
    const auto kind = optimizer_kind(optimizer);
    if (kind == "AdamW") slot = std::make_unique<torch::optim::AdamWParamState>();
    if (kind == "Adam") slot = std::make_unique<torch::optim::AdamParamState>();
    if (kind == "SGD") slot = std::make_unique<torch::optim::SGDParamState>();
  }
  at::NoGradGuard no_grad;
  auto* step = detail::each_state(*slot, [&](const char* name, at::Tensor& tensor) {
    const auto found = std::find_if(state->tensors.begin(), state->tensors.end(),
                                    [&](const auto& entry) { return entry.first == name; });
    if (found == state->tensors.end()) {
      tensor.reset();
      return;
    }
    const auto& value = found->second;
    const bool fits = tensor.defined() && tensor.numel() == value.numel() && tensor.dtype() == value.dtype();
    if (!fits) tensor = torch::empty(shard.sizes(), value.options().device(shard.device()));
    tensor.copy_(value.view(tensor.sizes()));
  });
  if (step) *step = state->step;
}

}  // namespace sealift::train
