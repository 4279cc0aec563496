// SPDX-License-Identifier: Apache-2.0
#include "trainer/models/decoder.hpp"

#include "trainer/kernels/swiglu.hpp"
#include "trainer/models/latent_attention.hpp"
#include "trainer/models/moe.hpp"

namespace sealift::trainer {
namespace {

constexpr const char* kTanh = "tanh";

/// activation(gate) * up
template <Activation kind>
struct Gated : torch::autograd::Function<Gated<kind>> {
  using Tensors = torch::autograd::variable_list;
  using Context = torch::autograd::AutogradContext;

  static at::Tensor forward(Context* context, const at::Tensor& gate, const at::Tensor& up) {
    context->save_for_backward({gate, up});
    const auto by_kernel = kind == Activation::Silu ? kernels::swiglu(gate, up) : at::Tensor();
    return by_kernel.defined() ? by_kernel : active(gate).mul_(up);
  }

  static Tensors backward(Context* context, const Tensors& gradients) {
    const auto saved = context->get_saved_variables();
    const auto &gate = saved[0], &up = saved[1], &gradient = gradients[0];
    if (kind == Activation::Silu) {
      const auto [of_gate, of_up] = kernels::swiglu_backward(gradient, gate, up);
      if (of_gate.defined()) return {of_gate, of_up};
    }
    return {slope(gradient * up, gate), active(gate).mul_(gradient)};
  }

 private:
  static at::Tensor active(const at::Tensor& gate) {
    return kind == Activation::Silu ? at::silu(gate) : at::gelu(gate, kTanh);
  }
  static at::Tensor slope(const at::Tensor& gradient, const at::Tensor& gate) {
    return kind == Activation::Silu ? at::silu_backward(gradient, gate) : at::gelu_backward(gradient, gate, kTanh);
  }
};

/// As a tensor of `dtype` holds it.
double rounded(double value, at::ScalarType dtype) {
  return at::scalar_tensor(value, at::TensorOptions(at::kCPU).dtype(dtype)).item<double>();
}

void check_batch(const TokenBatch& batch) {
  TORCH_CHECK(batch.ids.defined() && batch.ids.dim() == 2 && batch.ids.numel() > 0, "ids have shape ",
              batch.ids.defined() ? batch.ids.sizes() : at::IntArrayRef(), "; expected [batch, time]");
  for (const auto* tensor : {&batch.positions, &batch.segments, &batch.labels}) {
    TORCH_CHECK(!tensor->defined() || tensor->sizes() == batch.ids.sizes(), "a batch has ids ", batch.ids.sizes(),
                " and positions, segments or labels ", tensor->sizes(), "; expected the same shape");
  }
}

}  // namespace

at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up) {
  return gated(gate, up, Activation::Silu);
}

at::Tensor gated(const at::Tensor& gate, const at::Tensor& up, Activation activation) {
  return activation == Activation::Silu ? Gated<Activation::Silu>::apply(gate, up)
                                        : Gated<Activation::GeluTanh>::apply(gate, up);
}

std::shared_ptr<FeedForward> make_feed_forward(const DecoderConfig& config, std::int64_t layer) {
  if (config.is_sparse(layer)) return std::make_shared<SparseBlockImpl>(config.width, *config.experts);
  return std::make_shared<MlpImpl>(config, config.mlp_width);
}

std::shared_ptr<AnyAttention> make_attention(const DecoderConfig& config, std::int64_t layer) {
  if (config.latent) return std::make_shared<LatentAttentionImpl>(config, layer);
  return std::make_shared<AttentionImpl>(config, layer);
}

DecoderImpl::DecoderImpl(const DecoderConfig& config, const DecoderOptions& options)
    : config_(config), options_(options), rope_(config.rope, config.turned_dim(), config.max_positions) {
  if (config.window_rope) window_rope_.emplace(*config.window_rope, config.head_dim, config.max_positions);
  // Containers only for their names: model.layers.0 and so on.
  const auto body = register_module("model", std::make_shared<torch::nn::Module>());
  embedding_ = body->register_module("embed_tokens", Table(config.vocabulary, config.width));
  const auto layers = body->register_module("layers", std::make_shared<torch::nn::Module>());
  for (std::int64_t i = 0; i < config.layers; ++i) {
    layers_.push_back(
        layers->register_module(std::to_string(i), train::Shardable<train::Recomputed<DecoderLayer>>(config, i)));
    layers_.back()->recomputes = options.recompute;
  }
  norm_ = body->register_module("norm", RmsNorm(config.width, config.norm_eps, config.norm));
  if (config.reward_head) {
    head_ = register_module("score", Table(1, config.width));
  } else if (!config.tied_head) {
    head_ = register_module("lm_head", Table(config.vocabulary, config.width));
  }
  const auto dtype = options.dtype.value_or(config.dtype);
  if (dtype != at::kFloat) to(dtype);
}

std::tuple<at::Tensor, at::Tensor> DecoderImpl::forward(const TokenBatch& given) {
  check_batch(given);
  const auto batch = with_shape(given);
  const auto time = batch.ids.size(1);
  const auto positions =
      batch.positions.defined() ? batch.positions : at::arange(time, batch.ids.options()).unsqueeze(0);
  Surroundings around{.rope = rope_.tables(positions),
                      .visibility = std::make_shared<const Visibility>(batch.segments, time, *batch.shape, positions)};
  if (window_rope_) around.window_rope = window_rope_->tables(positions);
  around.temperature = temperature(positions);
  if (config_.experts && batch.segments.defined()) around.counted = batch.segments >= 0;
  const auto [hidden, routed] = run(batch.ids, around);
  const auto loss = router_loss(routed, batch, around.counted);
  if (config_.reward_head) return {scores(hidden, batch.shape->last), loss};
  if (!batch.labels.defined()) return {logits(hidden), loss};
  return {label_log_probabilities(hidden, head(), batch.labels, options_.logits_at_a_time, token_weights_, batch.shape,
                                  config_.logit_cap),
          loss};
}

at::Tensor DecoderImpl::next_logits(const at::Tensor& ids, KeyValueCache& cache) {
  at::NoGradGuard no_grad;
  const auto time = ids.size(1);
  TORCH_CHECK(cache.length + time <= cache.capacity, "a cache for ", cache.capacity, " tokens has ", cache.length,
              " and shall take ", time, " more; make a larger one");
  TORCH_CHECK(cache.length == 0 || time == 1, "a cache has ", cache.length, " tokens and shall take ", time,
              "; after the prompt, give one at a time");
  const auto positions = at::arange(cache.length, cache.length + time, ids.options()).unsqueeze(0);
  Surroundings around{.rope = rope_.tables(positions),
                      .visibility = std::make_shared<const Visibility>(at::Tensor(), time, RowShape{}),
                      .cache = &cache};
  if (window_rope_) around.window_rope = window_rope_->tables(positions);
  around.temperature = temperature(positions);
  const auto hidden = std::get<0>(run(ids, around));
  cache.length += time;
  return logits(hidden.select(1, time - 1));
}

at::Tensor DecoderImpl::temperature(const at::Tensor& positions) const {
  if (!config_.temperature) return {};
  const auto [scale, floor] = *config_.temperature;
  return (((positions.to(at::kFloat) + 1) / floor).floor().log1p() * scale + 1).unsqueeze(-1).unsqueeze(-1);
}

std::tuple<at::Tensor, at::Tensor> DecoderImpl::run(const at::Tensor& ids, const Surroundings& around) {
  auto hidden = at::embedding(embedding_->weight, ids, config_.padding_token.value_or(-1));
  if (config_.embedding_scale != 1) {
    hidden = hidden * (config_.rounds_embedding_scale ? rounded(config_.embedding_scale, hidden.scalar_type())
                                                      : config_.embedding_scale);
  }
  at::Tensor routed;
  for (auto& layer : layers_) {
    at::Tensor of_layer;
    std::tie(hidden, of_layer) = layer(hidden, around);
    if (of_layer.defined()) routed = routed.defined() ? routed + of_layer : of_layer;
  }
  hidden = norm_(hidden);
  // Before the head, where it is linear: nobody holds all logits.
  if (config_.logit_divisor != 1) hidden = hidden / config_.logit_divisor;
  return {hidden, routed};
}

at::Tensor DecoderImpl::logits(const at::Tensor& hidden) const {
  const auto plain = torch::linear(hidden, head());
  return config_.logit_cap > 0 ? (plain / config_.logit_cap).tanh() * config_.logit_cap : plain;
}

at::Tensor DecoderImpl::scores(const at::Tensor& hidden, const at::Tensor& last) const {
  const auto states =
      last.defined() ? hidden.flatten(0, 1).index_select(0, last) : hidden.select(1, hidden.size(1) - 1);
  return torch::linear(states, head_->weight).squeeze(-1).to(at::kFloat);
}

at::Tensor DecoderImpl::router_loss(const at::Tensor& routed, const TokenBatch& batch,
                                    const at::Tensor& counted) const {
  if (!routed.defined()) return {};
  const auto& layers = config_.experts->layers;
  const auto sparse = std::count(layers.begin(), layers.end(), true);
  const auto tokens = counted.defined() ? counted.sum().to(at::kFloat)
                                        : at::full({}, static_cast<double>(batch.ids.numel()), routed.options());
  const auto mean = routed / (static_cast<double>(sparse) * tokens);
  return (mean[0] * mean[1]).sum() * config_.experts->experts;
}

train::InitFunction first_values(const DecoderConfig& config, std::uint64_t seed) {
  return {[deviation = config.initializer_range, scale = config.norm == NormKind::RmsOnePlus ? 0 : 1](
              const std::string& name, at::Tensor tensor, at::Generator random) {
            if (name.ends_with("norm.weight")) {
              tensor.fill_(scale);
            } else if (name.ends_with(".bias") || name.ends_with("_proj_bias")) {
              tensor.zero_();
            } else {
              tensor.normal_(0, deviation, random);
            }
          },
          seed};
}

}  // namespace sealift::trainer
