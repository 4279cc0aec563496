// SPDX-License-Identifier: Apache-2.0
// What a unit puts into autograd's graph: hooks on gradients and outputs, a node before a call's inputs.
// Bodies of `Unit` that need autograd's types; `Shardable` calls them around a block's forward.
// Autograd's order is the schedule: a hook on a call's outputs opens its backward and a node before its inputs closes
// it, so nothing waits for a gradient that never comes.
#pragma once

#include <sealift/train/bodies.hpp>
#include <sealift/train/unit/tensor_walk.hpp>
#include <sealift/train/unit/unit.hpp>

#include <torch/csrc/autograd/custom_function.h>

namespace sealift::train {

namespace detail {

/// The identity before a call's inputs; its backward runs when everything after it has run. Its outputs are views, and
/// autograd refuses to change them in place, since the caller's tensor would change without its history.
struct InputsNode : torch::autograd::Function<InputsNode> {
  using Tensors = torch::autograd::variable_list;
  using Context = torch::autograd::AutogradContext;

  struct Holder : torch::CustomClassHolder {
    std::shared_ptr<Call> call;
  };

  static Tensors forward(Context* context, const c10::intrusive_ptr<Holder>& holder, at::TensorList inputs);

  static Tensors backward(Context* context, Tensors gradients);
};

}  // namespace detail

/// For the backward of a function of one's own, in place of returning left · right as the gradient of `parameter`: the
/// product adds itself to the buffer of gradients that are reduced together, in its dtype. False, and nothing is done,
/// where the gradient has to be a tensor: it is not reduced, somebody else listens to it, or it is asked for by
/// torch::autograd::grad or for a graph of its own. A parameter may be used elsewhere, too; each use adds its own.
bool add_gradient_product(const at::Tensor& parameter, const at::Tensor& left, const at::Tensor& right);

template <class... Inputs>
std::shared_ptr<detail::Call> Unit::take_inputs(const std::weak_ptr<Unit>& self, Inputs&... inputs) {
  const auto each = [&](const auto& visit) {
    const auto one = [&](auto& input) {
      if constexpr (detail::HoldsTensors<std::remove_cvref_t<decltype(input)>>::value) {
        detail::for_each_tensor(input, visit);
      }
    };
    (one(inputs), ...);
  };
  if (options_.precision.param_dtype && options_.precision.cast_forward_inputs) {
    each([&](at::Tensor& input) {
      if (input.defined() && input.is_floating_point()) input = input.to(*options_.precision.param_dtype);
    });
  }
  if (!at::GradMode::is_enabled()) return nullptr;
  auto call = std::make_shared<detail::Call>();
  call->unit = self;
  if (flats_.empty()) return call;
  call->step = session_->step;
  if (detail::in_graph_task()) call->awaited_in = session_->passes;  // by the recomputation that made it
  calls_.push_back(call);
  torch::autograd::variable_list joined;
  each([&](at::Tensor& input) {
    if (input.defined() && input.requires_grad()) joined.push_back(input);
  });
  if (joined.empty()) return call;
  const auto holder = c10::make_intrusive<detail::InputsNode::Holder>();
  holder->call = call;
  joined = detail::InputsNode::apply(holder, at::TensorList(joined));
  call->before_inputs = joined.front().grad_fn().get();
  std::size_t next = 0;
  each([&](at::Tensor& input) {
    if (input.defined() && input.requires_grad()) input = joined[next++];
  });
  return call;
}

template <class Outputs>
void Unit::after_forward(Outputs& outputs, const std::shared_ptr<detail::Call>& call, bool last) {
  if (is_root() && options_.precision.output_dtype) {
    detail::for_each_tensor(outputs, [&](at::Tensor& output) {
      if (output.defined() && output.is_floating_point()) output = output.to(*options_.precision.output_dtype);
    });
  }
  if (session_->on_output) {
    detail::for_each_tensor(outputs, [&](const at::Tensor& output) {
      if (output.defined()) session_->on_output(label_, output);
    });
  }
  bool differentiable = false;
  if (call) {
    detail::for_each_tensor(outputs, [&](const at::Tensor& output) {
      if (!output.defined() || !output.requires_grad()) return;
      differentiable = true;
      call->after_outputs = output.grad_fn().get();
      output.register_hook([call](const at::Tensor&) {
        if (auto unit = call->unit.lock()) unit->before_backward(*call);
      });
    });
  }
  if (flats_.empty() && !is_root()) return;
  // A forward that runs inside a backward (recomputation) leaves the unit to that backward.
  if (in_backward_ || (differentiable && detail::in_graph_task())) return;
  if (differentiable) call->place = session_->order.after_forward(number_);
  if (is_root() && session_->holds == 0) {  // free what was gathered for calls that were not made
    for (auto& unit : session_->units) {
      for (auto& flat : unit->flats()) {
        if (flat->residence() == Residence::Gathering) flat->reshard();
      }
    }
  }
  // The root's backward comes first, so it would be gathered again at once. Without a backward nothing else frees it.
  const bool keep = differentiable && (is_root() || !options_.reshard_after_forward);
  if (!last || keep || session_->pass.keep || session_->holds > 0) return;
  for (auto& flat : flats_) {
    const bool to_group = differentiable && options_.reshard_group > 1;
    to_group ? flat->reshard_to_group() : flat->reshard();
  }
}

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/unit/unit_graph_inl.hpp>
#endif
