// SPDX-License-Identifier: Apache-2.0
// The bodies of recompute.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/step/recompute.hpp>

#include <torch/csrc/autograd/engine.h>

#include <algorithm>

namespace sealift::train {

namespace detail {

SEALIFT_BODY Replay::Tensors Replay::run_first(const Tensors& inputs) {
  const AutocastGuard guard(autocast.without_cache());
  auto outputs = run(inputs, returned);
  random.keep_drawn();
  TORCH_CHECK(!outputs.empty(), "recompute: the body returned no tensor; return one, or tuples and vectors of them");
  for (const auto& output : outputs) {
    output_sizes.push_back(output.sizes().vec());
    output_dtypes.push_back(output.scalar_type());
  }
  return outputs;
}

SEALIFT_BODY Replay::Tensors Replay::run_again(const Tensors& inputs) const {
  const RandomGuard numbers(random);
  const AutocastGuard casts(autocast);
  at::AutoGradMode grad(true);
  std::any unused;
  auto outputs = run(inputs, unused);
  TORCH_CHECK(outputs.size() == output_sizes.size(), "recompute: the body made ", outputs.size(),
              " tensors in backward and ", output_sizes.size(),
              " in forward; it must do the same both times, so let it depend on its inputs only");
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    TORCH_CHECK(outputs[i].sizes() == at::IntArrayRef(output_sizes[i]), "recompute: output ", i, " has shape ",
                outputs[i].sizes(), " in backward and ", at::IntArrayRef(output_sizes[i]),
                " in forward; the body must do the same both times, so let it depend on its inputs only");
    TORCH_CHECK(outputs[i].scalar_type() == output_dtypes[i], "recompute: output ", i, " is ", outputs[i].scalar_type(),
                " in backward and ", output_dtypes[i],
                " in forward; the body must do the same both times, so let it depend on its inputs only");
  }
  return outputs;
}

SEALIFT_BODY RecomputeNode::Tensors RecomputeNode::forward(Context* context, const c10::intrusive_ptr<Replay>& replay,
                                                           const at::Tensor& /*anchor*/, at::TensorList inputs) {
  auto outputs = replay->run_first(inputs.vec());
  context->save_for_backward(inputs.vec());
  context->saved_data["replay"] = c10::IValue::make_capsule(replay);
  context->set_materialize_grads(false);
  return outputs;
}

SEALIFT_BODY RecomputeNode::Tensors RecomputeNode::backward(Context* context, const Tensors& gradients) {
  TORCH_CHECK(torch::autograd::Engine::get_default_engine().is_checkpoint_valid() && !at::GradMode::is_enabled(),
              "recompute: autograd::grad() and create_graph do not reach the parameters inside a recomputed body; "
              "call backward() without inputs");
  Tensors inputs;
  for (const auto& saved : context->get_saved_variables()) {
    inputs.push_back(saved.detach().set_requires_grad(saved.requires_grad()));
  }
  const auto replay = c10::static_intrusive_pointer_cast<Replay>(context->saved_data.at("replay").toCapsule());
  torch::autograd::edge_list roots;  // of the outputs, which are freed before their backward
  Tensors root_gradients;
  {
    const auto outputs = replay->run_again(inputs);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (!outputs[i].requires_grad() || !gradients[i].defined()) continue;
      roots.push_back(torch::autograd::impl::gradient_edge(outputs[i]));
      root_gradients.push_back(gradients[i]);
    }
  }
  if (!roots.empty()) {
    torch::autograd::Engine::get_default_engine().execute(roots, root_gradients, /*keep_graph=*/false,
                                                          /*create_graph=*/false, /*accumulate_grad=*/true);
  }
  Tensors result(2);  // of the replay and of the anchor: none
  for (const auto& input : inputs) result.push_back(input.grad());
  return result;
}

}  // namespace detail

}  // namespace sealift::train
