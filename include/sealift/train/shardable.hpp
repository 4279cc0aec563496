// SPDX-License-Identifier: Apache-2.0
// `Shardable<BlockHolder>`: holds a block that may be a unit, and is used exactly as `BlockHolder` is.
// C++ modules have no forward hooks, so the holder's own module puts its `forward` in front of the block's.
// Until `parallelize` fills the slot, a call is a plain call: the model does not know that it may be sharded.
#pragma once

#include <sealift/train/unit.hpp>

namespace sealift::train {

/// What `parallelize` looks for in a model: a place for a unit.
struct UnitSlot {
  virtual ~UnitSlot() = default;
  std::shared_ptr<Unit> unit;
};

/// The block `Block` with a slot; its forward runs the unit's steps around the block's.
template <class Block>
class ShardableImpl : public Block, public UnitSlot {
 public:
  using Block::Block;

  template <class... Arguments>
  auto forward(Arguments&&... arguments) {
    static_assert(!std::is_void_v<decltype(Block::forward(std::forward<Arguments>(arguments)...))>,
                  "a Shardable block must return what its backward starts from");
    if (!unit) return Block::forward(std::forward<Arguments>(arguments)...);
    unit->before_forward();
    auto outputs = Block::forward(std::forward<Arguments>(arguments)...);
    unit->after_forward(outputs, unit);
    return outputs;
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
