// SPDX-License-Identifier: Apache-2.0
// The model of the property test: a tiny residual stack of which a configuration chooses the shape.
// `training` builds it twice: in double as the reference, and on each rank.
// Shapes are small primes, so that nothing divides and hundreds of configurations fit into a minute.
#pragma once

#include "tests/train/property/configuration.hpp"

#include <sealift/train.hpp>

namespace sealift::test::property {

using namespace sealift::train;

inline constexpr std::int64_t kVocabulary = 7, kWidth = 6, kBlocksInModel = 4;

/// What of a configuration the model is made of.
struct Shape {
  bool nested = false, tied = false, side = false, in_place = false, spare = false;
  std::string recompute = "none";
};

class InnerImpl : public torch::nn::Module {
 public:
  InnerImpl() : linear_(register_module("linear", torch::nn::Linear(5, 5))) {
    gain_ = register_parameter("gain", torch::ones({5}));
  }
  at::Tensor forward(const at::Tensor& x) { return torch::tanh(linear_(x)) * gain_; }

 private:
  torch::nn::Linear linear_;
  at::Tensor gain_;
};
TORCH_MODULE(Inner);

/// (x, beside) -> (x + f(x) + g(beside), a number for the loss), with x and beside [rows, kWidth].
class BlockImpl : public torch::nn::Module {
 public:
  explicit BlockImpl(const Shape& shape)
      : shape_(shape),
        up_(register_module("up", torch::nn::Linear(kWidth, 5))),
        down_(register_module("down", torch::nn::Linear(5, kWidth))),
        adapter_in_(register_module("adapter_in", torch::nn::Linear(torch::nn::LinearOptions(kWidth, 2).bias(false)))),
        adapter_out_(
            register_module("adapter_out", torch::nn::Linear(torch::nn::LinearOptions(2, kWidth).bias(false)))) {
    if (shape.nested) {
      inner_sharded_ = register_module("inner", Shardable<Inner>());
    } else {
      inner_ = register_module("inner", Inner());
    }
    extra_ = register_parameter("extra", torch::ones({kWidth}));
    gate_ = register_parameter("gate", torch::ones({kWidth}));
  }

  std::pair<at::Tensor, at::Tensor> forward(at::Tensor x, const at::Tensor& beside) {
    if (fails) throw std::runtime_error("in forward, on purpose");
    if (shape_.in_place) x.mul_(1.25);
    const auto body = [this](const at::Tensor& in) {
      auto hidden = up_(in);
      TORCH_CHECK(!computes_in || hidden.scalar_type() == *computes_in, "a block computes in ", hidden.scalar_type(),
                  " where autocast says ", *computes_in);
      hidden = torch::tanh(hidden);
      hidden = shape_.nested ? inner_sharded_(hidden) : inner_(hidden);
      return down_(hidden) + adapter_out_(adapter_in_(in));
    };
    auto y = x + (shape_.recompute == "lambda" ? recompute(body, x) : body(x)) + 0.1 * beside;
    if (uses_extra) y = y + extra_ * 0.3;
    if (fails_in_backward && y.requires_grad()) {
      y.register_hook([](const at::Tensor&) -> at::Tensor { throw std::runtime_error("in backward, on purpose"); });
    }
    return {y, shape_.side ? (y * gate_).mean() : at::Tensor()};
  }

  bool fails = false, fails_in_backward = false;
  bool uses_extra = true;
  std::optional<at::ScalarType> computes_in;  ///< what a matrix product must be in, also when computed again

 private:
  Shape shape_;
  torch::nn::Linear up_, down_, adapter_in_, adapter_out_;
  Inner inner_{nullptr};
  Shardable<Inner> inner_sharded_{nullptr};
  at::Tensor extra_, gate_;
};
TORCH_MODULE(Block);

class NetImpl : public torch::nn::Module {
 public:
  explicit NetImpl(const Shape& shape) : shape_(shape) {
    if (shape.tied) {
      tokens_ = register_module("tokens", torch::nn::Embedding(kVocabulary, kWidth));
    } else {
      tokens_sharded_ = register_module("tokens", Shardable<torch::nn::Embedding>(kVocabulary, kWidth));
    }
    for (std::int64_t i = 0; i < kBlocksInModel; ++i) add_block("block" + std::to_string(i));
    if (shape.spare) add_block("spare");
    if (!shape.tied) head_ = register_module("head", Shardable<torch::nn::Linear>(kWidth, kVocabulary));
    gain = register_parameter("gain", torch::ones({}));
    count = register_buffer("count", torch::zeros({}));
  }

  /// Token numbers [rows] and the blocks to call -> logits [rows, kVocabulary] and the sum of the blocks' numbers.
  std::pair<at::Tensor, at::Tensor> forward(const at::Tensor& ids, const std::vector<std::size_t>& path) {
    const auto start = shape_.tied ? tokens_(ids) : tokens_sharded_(ids);
    auto hidden = start;
    at::Tensor side;
    for (const auto i : path) {
      at::Tensor number;
      std::tie(hidden, number) = call_block(i, hidden, start);
      hidden = hidden.to(start.scalar_type());  // a block may compute in another dtype than those beside it
      if (number.defined()) side = side.defined() ? side + number : number;
    }
    hidden = scaled(hidden + 0.5 * start);
    return {shape_.tied ? torch::linear(hidden, tokens_->weight) : head_(hidden), side};
  }

  /// Another method than forward that reads the root's parameters.
  at::Tensor scaled(const at::Tensor& hidden) { return hidden * gain * (1 + 0.1 * count); }

  std::pair<at::Tensor, at::Tensor> call_block(std::size_t i, const at::Tensor& x, const at::Tensor& beside) {
    if (shape_.recompute != "around") return calls_[i](x, beside);
    return recompute([call = calls_[i]](const at::Tensor& a, const at::Tensor& b) { return call(a, b); }, x, beside);
  }

  std::vector<BlockImpl*> blocks;
  std::vector<UnitSlot*> slots;
  at::Tensor gain, count;

 private:
  template <class Holder>
  void add(const std::string& name) {
    Holder block(shape_);
    register_module(name, block);
    blocks.push_back(block.get());
    slots.push_back(block.get());
    calls_.push_back([block](const at::Tensor& x, const at::Tensor& beside) mutable { return block(x, beside); });
  }
  void add_block(const std::string& name) {
    shape_.recompute == "inside" ? add<Shardable<Recomputed<Block>>>(name) : add<Shardable<Block>>(name);
  }

  Shape shape_;
  torch::nn::Embedding tokens_{nullptr};
  Shardable<torch::nn::Embedding> tokens_sharded_{nullptr};
  Shardable<torch::nn::Linear> head_{nullptr};
  std::vector<std::function<std::pair<at::Tensor, at::Tensor>(const at::Tensor&, const at::Tensor&)>> calls_;
};
TORCH_MODULE(Net);

/// The model of `c`; the reference is never recomputed.
inline Shardable<Net> make_net(const Configuration& c, bool reference) {
  return Shardable<Net>(Shape{.nested = c.chosen(kNested),
                              .tied = c.chosen(kTied),
                              .side = c.chosen(kSide),
                              .in_place = c.chosen(kInPlace),
                              .spare = c.is(kUnused, "spare_block"),
                              .recompute = reference ? "none" : c.text(kRecompute)});
}

/// Fills parameters and buffers with values that depend on `phase` and their place in the model, and freezes what `c`
/// says.
inline void prepare(torch::nn::Module& net, const Configuration& c, double phase) {
  at::NoGradGuard no_grad;
  for (auto& item : net.named_parameters()) {
    phase += 0.37;
    auto& parameter = item.value();
    parameter.copy_(
        torch::sin(torch::arange(parameter.numel(), torch::kDouble).view(parameter.sizes()) * 0.91 + phase) * 0.4);
    const auto& name = item.key();
    const bool head = name.starts_with("head"), adapter = name.find("adapter") != name.npos;
    const bool frozen = c.is(kFrozen, "embedding")      ? name.starts_with("tokens")
                        : c.is(kFrozen, "weights")      ? name.ends_with("up.weight") || name.starts_with("block1.down")
                        : c.is(kFrozen, "block")        ? name.starts_with("block1")
                        : c.is(kFrozen, "head")         ? head
                        : c.is(kFrozen, "all_but_head") ? !head
                        : c.is(kFrozen, "all_but_adapters") ? !adapter
                                                            : false;
    parameter.set_requires_grad(!frozen);
  }
  for (auto& buffer : net.buffers()) buffer.fill_(phase - std::floor(phase));
}

}  // namespace sealift::test::property
