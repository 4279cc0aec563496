// SPDX-License-Identifier: Apache-2.0
#include "trainer/models/rope.hpp"

#include "trainer/kernels/rope.hpp"

#include <cmath>

namespace sealift::trainer {
namespace {

/// 1 / base^exponent, each in fp32 and in this order, as transformers computes it.
at::Tensor inverse_powers(double base, const at::Tensor& exponents) {
  return at::reciprocal(at::pow(base, exponents));
}

/// Llama 3.1: frequencies whose wavelength exceeds the old context are divided by the factor, short ones are kept, and
/// between them it changes smoothly. transformers' _compute_llama3_parameters.
at::Tensor llama3_frequencies(const RopeConfig& config, const at::Tensor& plain) {
  const auto context = static_cast<double>(config.original_positions);
  const auto low = config.low_frequency_factor, high = config.high_frequency_factor;
  const auto wavelength = 2 * M_PI / plain;
  const auto divided = at::where(wavelength > context / low, plain / config.factor, plain);
  const auto smooth = (context / wavelength - low) / (high - low);
  const auto between = (1 - smooth) * divided / config.factor + smooth * divided;
  const auto is_between = ~(wavelength < context / high) * ~(wavelength > context / low);
  return at::where(is_between, between, divided);
}

/// The dimension whose frequency turns `rotations` times in the old context.
double correction_dim(const RopeConfig& config, double dim, double rotations) {
  const auto context = static_cast<double>(config.original_positions);
  return dim * std::log(context / (rotations * 2 * M_PI)) / (2 * std::log(config.theta));
}

/// YaRN (arXiv 2309.00071): low frequencies interpolated, high ones kept, a ramp between. transformers'
/// _compute_yarn_parameters.
at::Tensor yarn_frequencies(const RopeConfig& config, const at::Tensor& exponents, std::int64_t head_dim) {
  const auto dim = static_cast<double>(head_dim);
  auto low = correction_dim(config, dim, config.beta_fast), high = correction_dim(config, dim, config.beta_slow);
  if (config.truncate) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0);
  high = std::min(high, dim - 1);
  if (low == high) high += 0.001;
  const auto powers = at::pow(config.theta, exponents);
  const auto ramp = ((at::arange(head_dim / 2, at::kFloat) - low) / (high - low)).clamp(0, 1);
  const auto kept = 1 - ramp;
  return 1.0 / (config.factor * powers) * (1 - kept) + 1.0 / powers * kept;
}

double yarn_scale(const RopeConfig& config) {
  if (config.attention_factor) return *config.attention_factor;
  const auto scale = [&](double mscale) {
    return config.factor <= 1 ? 1.0 : 0.1 * mscale * std::log(config.factor) + 1.0;
  };
  if (config.mscale != 0 && config.mscale_all_dim != 0) return scale(config.mscale) / scale(config.mscale_all_dim);
  return scale(1);
}

/// LongRoPE (arXiv 2402.13753): each frequency divided by its own factor. transformers' _compute_longrope_parameters.
at::Tensor long_frequencies(const RopeConfig& config, const at::Tensor& exponents, const std::vector<double>& factors) {
  const auto cpu = at::TensorOptions(at::kCPU).dtype(at::kFloat);  // named, since a model is built under MetaDevice
  return at::reciprocal(at::tensor(factors, cpu) * at::pow(config.theta, exponents));
}

double long_scale(const RopeConfig& config) {
  if (config.attention_factor) return *config.attention_factor;
  if (config.factor <= 1) return 1;
  return std::sqrt(1 + std::log(config.factor) / std::log(static_cast<double>(config.original_positions)));
}

/// Code Llama's "dynamic NTK": the base grows with the longest position of the batch, read on the device.
at::Tensor dynamic_frequencies(const RopeConfig& config, const at::Tensor& exponents, const at::Tensor& positions,
                               double head_dim, std::int64_t max_positions) {
  const auto length = (positions.max() + 1).clamp_min(max_positions);
  const auto growth = config.factor * length / static_cast<double>(max_positions) - (config.factor - 1);
  const auto base = config.theta * at::pow(growth, head_dim / (head_dim - 2));
  return at::reciprocal(at::pow(base, exponents));
}

/// Each pair (a, b) turned: (a cos - b sin, b cos + a sin). What is behind the pairs stays.
at::Tensor turn(const at::Tensor& heads, const RopeTables& tables, int direction) {
  const auto& [cos, sin, by_neighbours] = tables;
  const auto pairs = cos.size(-1), rest = heads.size(-1) - 2 * pairs;
  const auto which = by_neighbours ? -1 : -2;  // the dimension of a pair's two elements
  const auto paired = [&](const at::Tensor& tensor) {
    const auto turning = rest > 0 ? tensor.narrow(-1, 0, 2 * pairs) : tensor;
    return by_neighbours ? turning.unflatten(-1, {pairs, 2}) : turning.unflatten(-1, {2, pairs});
  };
  auto turned = at::empty(heads.sizes(), heads.options());
  auto to = paired(turned);
  const auto from = paired(heads);
  at::mul_out(to, from, cos.unsqueeze(which));
  to.select(which, 0).addcmul_(from.select(which, 1), sin, -direction);
  to.select(which, 1).addcmul_(from.select(which, 0), sin, direction);
  if (rest > 0) turned.narrow(-1, 2 * pairs, rest).copy_(heads.narrow(-1, 2 * pairs, rest));
  return turned;
}

/// Queries and keys as one tensor of heads, where keys follow queries in each token's memory; else undefined.
at::Tensor side_by_side(const at::Tensor& queries, const at::Tensor& keys) {
  const auto heads = queries.size(2), head_dim = queries.size(3);
  const bool follow = queries.is_alias_of(keys) && queries.strides() == keys.strides() && queries.stride(3) == 1 &&
                      queries.stride(2) == head_dim &&
                      keys.storage_offset() == queries.storage_offset() + heads * head_dim;
  if (!follow) return {};
  return queries.as_strided({queries.size(0), queries.size(1), heads + keys.size(2), head_dim}, queries.strides(),
                            queries.storage_offset());
}

using Both = std::tuple<at::Tensor, at::Tensor>;

/// Not initialized, like queries and keys without gaps; parts of one tensor where these lie side by side.
Both room_for(const at::Tensor& queries, const at::Tensor& keys) {
  const auto both = side_by_side(queries, keys);
  if (!both.defined()) {
    return {at::empty(queries.sizes(), queries.options()), at::empty(keys.sizes(), keys.options())};
  }
  const auto all = at::empty(both.sizes(), both.options());
  return {all.narrow(2, 0, queries.size(2)), all.narrow(2, queries.size(2), keys.size(2))};
}

/// Both turned by one kernel, where the device has it and it takes these.
std::optional<Both> turn_by_kernel(const at::Tensor& queries, const at::Tensor& keys, const RopeTables& tables,
                                   int direction) {
  const auto launcher = kernels::launcher_of(queries.device());
  if (!launcher || tables.by_neighbours || !kernels::takes_rope(queries, keys, tables.cos, tables.sin)) return {};
  const auto [to_queries, to_keys] = room_for(queries, keys);
  kernels::rope(*launcher, queries, keys, tables.cos, tables.sin, direction, to_queries, to_keys);
  return Both{to_queries, to_keys};
}

struct Rotation : torch::autograd::Function<Rotation> {
  using Tensors = torch::autograd::variable_list;
  using Context = torch::autograd::AutogradContext;

  static Tensors forward(Context* context, const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& cos,
                         const at::Tensor& sin, bool by_neighbours) {
    // Slices of one tensor are outputs of their own, not views that autograd follows.
    const at::AutoDispatchBelowADInplaceOrView plain;
    context->save_for_backward({cos, sin});
    context->saved_data["by_neighbours"] = by_neighbours;
    const RopeTables tables{cos, sin, by_neighbours};
    if (const auto turned = turn_by_kernel(queries, keys, tables, 1)) {
      return {std::get<0>(*turned), std::get<1>(*turned)};
    }
    const auto both = side_by_side(queries, keys);
    if (!both.defined()) return {turn(queries, tables, 1), turn(keys, tables, 1)};
    const auto turned = turn(both, tables, 1);
    return {turned.narrow(2, 0, queries.size(2)), turned.narrow(2, queries.size(2), keys.size(2))};
  }

  static Tensors backward(Context* context, const Tensors& gradients) {
    const at::AutoDispatchBelowADInplaceOrView plain;
    const auto saved = context->get_saved_variables();
    const RopeTables tables{saved[0], saved[1], context->saved_data["by_neighbours"].toBool()};
    Tensors result(5);
    if (context->needs_input_grad(0) && context->needs_input_grad(1)) {
      if (const auto turned = turn_by_kernel(gradients[0], gradients[1], tables, -1)) {
        std::tie(result[0], result[1]) = *turned;
        return result;
      }
    }
    for (std::size_t i = 0; i < 2; ++i) {
      if (context->needs_input_grad(i)) result[i] = turn(gradients[i], tables, -1);
    }
    return result;
  }
};

}  // namespace

Rope::Rope(const RopeConfig& config, std::int64_t head_dim, std::int64_t max_positions)
    : config_(config),
      turned_(config.turned(head_dim)),
      max_positions_(max_positions),
      exponents_(at::arange(0, turned_, 2, at::kFloat) / static_cast<double>(turned_)) {
  TORCH_CHECK(config.scaling != RopeScaling::Dynamic || turned_ > 2,
              "dynamic rope scaling of 2 elements of a head; expected more");
  const auto plain = inverse_powers(config.theta, exponents_);
  frequencies_ = config.scaling == RopeScaling::Linear   ? plain / config.factor
                 : config.scaling == RopeScaling::Llama3 ? llama3_frequencies(config, plain)
                 : config.scaling == RopeScaling::Yarn   ? yarn_frequencies(config, exponents_, turned_)
                 : config.scaling == RopeScaling::Long   ? long_frequencies(config, exponents_, config.short_factors)
                                                         : plain;
  if (config.scaling == RopeScaling::Yarn) scale_ = yarn_scale(config);
  if (config.scaling != RopeScaling::Long) return;
  beyond_ = long_frequencies(config, exponents_, config.long_factors);
  scale_ = long_scale(config);
}

RopeTables Rope::tables(const at::Tensor& positions) const {
  at::NoGradGuard no_grad;
  const auto device = positions.device();
  if (frequencies_.device() != device) {
    frequencies_ = frequencies_.to(device);
    if (beyond_.defined()) beyond_ = beyond_.to(device);
  }
  auto frequencies = frequencies_;
  if (config_.scaling == RopeScaling::Dynamic) {
    frequencies =
        dynamic_frequencies(config_, exponents_.to(device), positions, static_cast<double>(turned_), max_positions_);
  } else if (config_.scaling == RopeScaling::Long) {  // chosen on the device, for which nothing waits
    frequencies = at::where(positions.max() >= config_.original_positions, beyond_, frequencies_);
  }
  const auto angles = positions.to(at::kFloat).unsqueeze(-1).unsqueeze(-1) * frequencies;
  if (scale_ == 1) return {angles.cos(), angles.sin(), config_.by_neighbours};
  return {angles.cos() * scale_, angles.sin() * scale_, config_.by_neighbours};
}

std::tuple<at::Tensor, at::Tensor> rotate(const at::Tensor& queries, const at::Tensor& keys, const RopeTables& tables) {
  const auto turned = Rotation::apply(queries, keys, tables.cos, tables.sin, tables.by_neighbours);
  return {turned[0], turned[1]};
}

}  // namespace sealift::trainer
