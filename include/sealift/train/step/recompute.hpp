// SPDX-License-Identifier: Apache-2.0
// Activation checkpointing: keeps the inputs of a part of the forward and computes the rest again in backward.
// Used in a model's forward, best inside a `Shardable` block: around one, the unit is gathered once more.
// LibTorch has none. This one is reentrant, a backward inside the backward, so that a body's activations live for that
// body only; random numbers and autocast repeat (replay_state.hpp).
// Mirrored by trainer/plan/memory.cpp (again): change both.
#pragma once

#include <sealift/train/bodies.hpp>
#include <sealift/train/step/replay_state.hpp>

#include <any>
#include <functional>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

namespace sealift::train {

namespace detail {

/// Calls `visit` on every tensor in `value`: itself, or in tuples, optionals and ranges; skips all else.
template <class Value, class Visit>
void visit_tensors(Value& value, const Visit& visit) {
  static_assert(!std::is_same_v<Value, const at::Tensor>, "recompute: pass std::vector<at::Tensor>, not a view of one");
  if constexpr (std::is_same_v<Value, at::Tensor>) {
    visit(value);
  } else if constexpr (requires { std::tuple_size<Value>::value; }) {
    std::apply([&](auto&... parts) { (visit_tensors(parts, visit), ...); }, value);
  } else if constexpr (requires {
                         value.has_value();
                         *value;
                       }) {
    if (value.has_value()) visit_tensors(*value, visit);
  } else if constexpr (requires { visit_tensors(*value.begin(), visit); }) {
    for (auto& part : value) visit_tensors(part, visit);
  }
}

/// A body with its arguments, without the tensors in them: what both runs share.
struct Replay : torch::CustomClassHolder {
  using Tensors = torch::autograd::variable_list;

  /// Runs the body with these tensors in its arguments. Returns its tensors in order; sets `returned` to all it
  /// returns.
  std::function<Tensors(const Tensors& inputs, std::any& returned)> run;
  RandomState random;                                 ///< before the first run
  AutocastState autocast = AutocastState::current();  ///< of the first run
  std::any returned{};                                ///< by the first run, until the caller takes it
  std::vector<std::vector<std::int64_t>> output_sizes{};
  std::vector<at::ScalarType> output_dtypes{};

  /// The tensors of the first run; notes their sizes and dtypes.
  Tensors run_first(const Tensors& inputs);

  /// The tensors of a second run, with a graph, and with the random numbers and the autocast of the first.
  Tensors run_again(const Tensors& inputs) const;
};

/// The node for the whole body in the graph of the outer forward.
struct RecomputeNode : torch::autograd::Function<RecomputeNode> {
  using Tensors = torch::autograd::variable_list;
  using Context = torch::autograd::AutogradContext;

  /// `anchor` requires a gradient, so that backward comes here even if only parameters inside the body do.
  static Tensors forward(Context* context, const c10::intrusive_ptr<Replay>& replay, const at::Tensor& /*anchor*/,
                         at::TensorList inputs);

  static Tensors backward(Context* context, const Tensors& gradients);
};

}  // namespace detail

/// body(inputs...), of which only the tensors among `inputs` (also in tuples, optionals and vectors) stay alive until
/// backward, which runs `body` again. It returns a tensor, or a tuple or vector of tensors, and is copied, so what it
/// holds by reference must live until backward; a parameter that it reads gets its gradient as usual, any other tensor
/// that needs one must be an input. Without grad mode this is a plain call. Not for autograd::grad() or create_graph.
template <class Body, class... Inputs>
auto recompute(Body body, Inputs... inputs) {
  using Outputs = std::decay_t<decltype(body(inputs...))>;
  static_assert(!std::is_void_v<Outputs>, "a recomputed body must return what its backward starts from");
  if (!at::GradMode::is_enabled()) return Outputs(body(inputs...));

  // The arguments without their tensors: autograd keeps those, knows when to free them and whether they were changed.
  auto arguments = std::make_tuple(std::move(inputs)...);
  torch::autograd::variable_list tensors;
  std::vector<bool> defined;
  detail::visit_tensors(arguments, [&](at::Tensor& tensor) {
    defined.push_back(tensor.defined());
    if (tensor.defined()) tensors.push_back(std::exchange(tensor, {}));
  });
  auto replay = c10::make_intrusive<detail::Replay>();
  replay->run = [body = std::move(body), arguments = std::move(arguments), defined = std::move(defined)](
                    const torch::autograd::variable_list& given, std::any& returned) mutable {
    auto filled = arguments;
    std::size_t place = 0, next = 0;
    detail::visit_tensors(filled, [&](at::Tensor& tensor) {
      if (defined[place++]) tensor = given[next++];
    });
    Outputs outputs = std::apply(body, filled);
    torch::autograd::variable_list made;
    detail::visit_tensors(outputs, [&](at::Tensor& tensor) {
      if (tensor.defined()) made.push_back(tensor);
    });
    returned = std::move(outputs);
    return made;
  };

  const auto anchor = torch::empty({0}, torch::requires_grad());
  const auto recorded = detail::RecomputeNode::apply(replay, anchor, at::TensorList(tensors));
  auto outputs = std::any_cast<Outputs>(std::exchange(replay->returned, {}));
  std::size_t next = 0;
  detail::visit_tensors(outputs, [&](at::Tensor& tensor) {
    if (tensor.defined()) tensor = recorded[next++];
  });
  return outputs;
}

/// The module `Block`, recomputed in backward if `recomputes` is true.
template <class Block>
class RecomputedImpl : public Block {
 public:
  using Block::Block;

  bool recomputes = true;  ///< false for blocks whose activations fit into memory

  template <class... Arguments>
  auto forward(Arguments&&... arguments) {
    using Outputs = std::decay_t<decltype(Block::forward(std::forward<Arguments>(arguments)...))>;
    if (!recomputes) return Outputs(Block::forward(std::forward<Arguments>(arguments)...));
    // Alive until backward, even when the model is not.
    const std::shared_ptr<RecomputedImpl> self(this->shared_from_this(), this);
    return recompute([self](auto&... inputs) -> Outputs { return self->Block::forward(inputs...); },
                     std::decay_t<Arguments>(std::forward<Arguments>(arguments))...);
  }
};

/// A holder as TORCH_MODULE makes them: `Shardable<Recomputed<LayerHolder>>` is a unit that recomputes its layer.
template <class Holder>
class Recomputed : public torch::nn::ModuleHolder<RecomputedImpl<typename Holder::ContainedType>> {
 public:
  using torch::nn::ModuleHolder<RecomputedImpl<typename Holder::ContainedType>>::ModuleHolder;

  template <class... Arguments>
  auto operator()(Arguments&&... arguments) {
    return this->get()->forward(std::forward<Arguments>(arguments)...);
  }
};

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/step/recompute_inl.hpp>
#endif
