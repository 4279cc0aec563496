// SPDX-License-Identifier: Apache-2.0
// The bodies of unit_graph.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/unit/unit_graph.hpp>

namespace sealift::train {

namespace detail {

/// Runs after autograd has accumulated a parameter's gradient of this pass.
struct GradientHook final : torch::autograd::PostAccumulateGradHook {
  std::weak_ptr<Unit> unit;
  ParameterId id;

  GradientHook(std::weak_ptr<Unit> unit, ParameterId id) : unit(std::move(unit)), id(id) {}

  void operator()(const at::Tensor& parameter) override {
    const auto alive = unit.lock();
    if (!alive) return;
    parameter.grad().defined() ? alive->on_gradient(id) : alive->after_products(id);
  }
};

/// How many hooks see the gradient of `parameter` before it is accumulated.
SEALIFT_BODY std::size_t listeners(const at::Tensor& parameter) {
  const auto* meta = torch::autograd::impl::get_autograd_meta(parameter);
  if (!meta || meta->hooks_.size() != 1 || !meta->cpp_hooks_list_) return meta ? meta->hooks_.size() + 1 : 0;
  const auto is_there = [](const auto& hook) { return hook != nullptr; };
  return static_cast<std::size_t>(
      std::count_if(meta->cpp_hooks_list_->begin(), meta->cpp_hooks_list_->end(), is_there));
}

SEALIFT_BODY InputsNode::Tensors InputsNode::forward(Context* context, const c10::intrusive_ptr<Holder>& holder,
                                                     at::TensorList inputs) {
  context->saved_data["call"] = c10::IValue::make_capsule(holder);
  context->set_materialize_grads(false);
  return inputs.vec();
}

SEALIFT_BODY InputsNode::Tensors InputsNode::backward(Context* context, Tensors gradients) {
  const auto holder = c10::static_intrusive_pointer_cast<Holder>(context->saved_data.at("call").toCapsule());
  if (auto unit = holder->call->unit.lock()) unit->after_inputs(*holder->call);
  gradients.insert(gradients.begin(), at::Tensor());  // of the holder: none
  return gradients;
}

}  // namespace detail

SEALIFT_BODY bool add_gradient_product(const at::Tensor& parameter, const at::Tensor& left, const at::Tensor& right) {
  if (at::GradMode::is_enabled() || !parameter.is_leaf()) return false;
  const auto* wanted = torch::autograd::get_current_graph_task_exec_info();
  if (wanted && !wanted->empty()) return false;  // some gradients alone, which are results
  const auto* hook = dynamic_cast<detail::GradientHook*>(torch::autograd::impl::post_acc_grad_hooks(parameter).get());
  const auto unit = hook ? hook->unit.lock() : nullptr;
  return unit && detail::listeners(parameter) == 1 && unit->on_product(hook->id, left, right);
}

SEALIFT_BODY void Unit::listen(const std::vector<GradientSlot>& slots, std::size_t flat,
                               const std::weak_ptr<Unit>& self) {
  for (std::size_t i = 0; i < slots.size(); ++i) {
    slots[i].parameter.register_hook([self](const at::Tensor&) {
      if (auto alive = self.lock()) alive->before_gradient();
    });
    torch::autograd::impl::set_post_acc_grad_hooks(
        slots[i].parameter, std::make_unique<detail::GradientHook>(self, ParameterId{.flat = flat, .index = i}));
  }
  gradients_.push_back(flat);
}

}  // namespace sealift::train
