// SPDX-License-Identifier: Apache-2.0
// `Shardable<BlockHolder>`: holds a block that may become a unit, and is used exactly as `BlockHolder` is.
// A model is written with it; `unit_plan` finds the slots and `parallelize` fills them. Until then a call is a plain
// call: the model does not know that it may be sharded.
// C++ modules have no forward hooks, so the holder's own module puts its `forward` in front of the block's.
#pragma once

#include <sealift/train/unit/unit_graph.hpp>

namespace sealift::train {

/// A place for a unit in a model, which `parallelize` fills.
struct UnitSlot {
  virtual ~UnitSlot() = default;
  std::shared_ptr<Unit> unit;
  bool last_of_unit = true;  ///< of the modules that share the unit
};

namespace detail {

/// A forward argument between caller and block: a copy if it holds tensors, which the unit may replace, else itself.
template <class Argument>
using Held =
    std::conditional_t<HoldsTensors<std::remove_cvref_t<Argument>>::value, std::remove_cvref_t<Argument>, Argument&&>;

}  // namespace detail

/// `Block` with a slot; its forward runs the unit's steps around the block's.
template <class Block>
class ShardableImpl : public Block, public UnitSlot {
 public:
  using Block::Block;

  template <class... Arguments>
  auto forward(Arguments&&... arguments) {
    return gathered([this](auto&&... inputs) { return Block::forward(std::forward<decltype(inputs)>(inputs)...); },
                    std::forward<Arguments>(arguments)...);
  }

  /// Runs another method of the block, such as `block->call_gathered(&DecoderImpl::generate, tokens)`, with its
  /// parameters gathered as for `forward`. FSDP2's register_forward_method.
  template <class Result, class Owner, class... Parameters, class... Arguments>
  auto call_gathered(Result (Owner::*method)(Parameters...), Arguments&&... arguments) {
    return gathered(
        [this, method](auto&&... inputs) { return (this->*method)(std::forward<decltype(inputs)>(inputs)...); },
        std::forward<Arguments>(arguments)...);
  }

 private:
  template <class Body, class... Arguments>
  auto gathered(const Body& body, Arguments&&... arguments) {
    using Outputs = decltype(body(std::forward<Arguments>(arguments)...));
    static_assert(detail::HoldsTensors<std::remove_cvref_t<Outputs>>::value,
                  "a Shardable block returns tensors, or tuples, pairs, optionals, vectors and arrays of them");
    if (!unit) return body(std::forward<Arguments>(arguments)...);
    const Unit::Forward running(*unit);
    unit->before_forward(this->is_training());
    std::tuple<detail::Held<Arguments>...> held{std::forward<Arguments>(arguments)...};
    return std::apply(
        [&](auto&... inputs) {
          const auto call = unit->take_inputs(unit, inputs...);
          auto outputs = body(static_cast<Arguments&&>(inputs)...);
          unit->after_forward(outputs, call, last_of_unit);
          return outputs;
        },
        held);
  }
};

/// A holder, as TORCH_MODULE makes them, for the module of `Holder`.
template <class Holder>
class Shardable : public torch::nn::ModuleHolder<ShardableImpl<typename Holder::ContainedType>> {
 public:
  using torch::nn::ModuleHolder<ShardableImpl<typename Holder::ContainedType>>::ModuleHolder;

  template <class... Arguments>
  auto operator()(Arguments&&... arguments) {
    return this->get()->forward(std::forward<Arguments>(arguments)...);
  }
};

}  // namespace sealift::train
