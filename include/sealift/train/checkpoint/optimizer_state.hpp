// SPDX-License-Identifier: Apache-2.0
// The state of LibTorch's optimizers as named tensors and numbers: read from an optimizer and set in one.
// Between `parallelize`, whose shards an optimizer steps, and `checkpoint_*`, which stores the state by name.
// LibTorch's own archive stores it by position, which means nothing in another world; names do.
#pragma once

#include <torch/torch.h>
#include <sealift/train/bodies.hpp>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sealift::train {

using Hyperparameters = std::map<std::string, double>;

/// An optimizer's state of one parameter; every tensor has as many elements as this rank's shard of it.
struct ParameterState {
  std::int64_t step = 0;
  std::vector<std::pair<std::string, at::Tensor>> tensors;
};

namespace detail {

// One line per optimizer and per field. A class derived from one of these (a fused step) counts as that one.

template <class Options, class Field>
void each_adam_option(Options& options, Field field) {
  field("lr", options.lr());
  field("beta1", std::get<0>(options.betas()));
  field("beta2", std::get<1>(options.betas()));
  field("eps", options.eps());
  field("weight_decay", options.weight_decay());
  field("amsgrad", options.amsgrad());
}

template <class State, class Field>
void each_adam_state(State& state, Field field) {
  field("exp_avg", state.exp_avg());
  field("exp_avg_sq", state.exp_avg_sq());
  field("max_exp_avg_sq", state.max_exp_avg_sq());
}

}  // namespace detail

/// Adam, AdamW or SGD.
std::string optimizer_kind(torch::optim::Optimizer& optimizer);

/// The tensors that every state of an optimizer of this kind has.
std::vector<std::string> required_state(const std::string& kind);

/// Learning rate and the like of one parameter group, by name; true and false are 1 and 0.
Hyperparameters hyperparameters(torch::optim::OptimizerOptions& options);

/// The reverse; `values` must have the names that `hyperparameters` gives for such options.
void set_hyperparameters(torch::optim::OptimizerOptions& options, const Hyperparameters& values);

/// The state of `shard` in `optimizer`; nothing before its first step.
std::optional<ParameterState> parameter_state(torch::optim::Optimizer& optimizer, const at::Tensor& shard);

/// Sets the state of `shard` in `optimizer`; without `state` removes it. Tensors that fit are written in place, since a
/// fused step may hold them as parts of one buffer, or on the host.
void set_parameter_state(torch::optim::Optimizer& optimizer, const at::Tensor& shard,
                         const std::optional<ParameterState>& state);

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/checkpoint/optimizer_state_inl.hpp>
#endif
