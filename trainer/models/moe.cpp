// SPDX-License-Identifier: Apache-2.0
#include "trainer/models/moe.hpp"

#include <torch/csrc/autograd/custom_function.h>

namespace sealift::trainer {
namespace {

using torch::autograd::AutogradContext;
using Tensors = torch::autograd::variable_list;

/// Whether at::_grouped_mm takes matrices of such rows: its kernels read 16 bytes at a time, and none takes no rows.
bool fits_kernel(const at::Tensor& x, const at::Tensor& weight) {
  const auto is_whole = [&](std::int64_t columns) {
    return columns * static_cast<std::int64_t>(x.element_size()) % 16 == 0;
  };
  const auto dtype = x.scalar_type();
  const bool known = dtype == at::kFloat || dtype == at::kBFloat16 || dtype == at::kHalf;
  return known && x.size(0) > 0 && is_whole(weight.size(1)) && is_whole(weight.size(2));
}

at::Tensor ends_of(const at::Tensor& counts) {
  return counts.cumsum(0, at::kInt);
}

/// Calls `body(expert, rows)` for each expert, `rows` being a function that narrows a tensor to its rows.
template <class Body>
void for_each_expert(const at::Tensor& counts, const Body& body) {
  const auto host = counts.to(at::kCPU);
  const auto* count = host.const_data_ptr<std::int64_t>();
  for (std::int64_t expert = 0, begin = 0; expert < host.numel(); begin += count[expert++]) {
    body(expert, [&, begin](const at::Tensor& all) { return all.narrow(0, begin, count[expert]); });
  }
}

/// [rows, a] and [experts, a, b] -> [rows, b]
at::Tensor product(const at::Tensor& x, const at::Tensor& matrices, const at::Tensor& counts) {
  if (fits_kernel(x, matrices)) return at::_grouped_mm(x, matrices, ends_of(counts));
  const auto y = at::empty({x.size(0), matrices.size(2)}, x.options());
  for_each_expert(counts, [&](std::int64_t expert, const auto& rows) {
    auto out = rows(y);
    if (out.size(0) > 0) at::mm_out(out, rows(x), matrices[expert]);
  });
  return y;
}

/// [rows, a] and [rows, b] -> [experts, a, b]; zeros for an expert without rows.
at::Tensor product_of_rows(const at::Tensor& x, const at::Tensor& y, const at::Tensor& counts, const at::Tensor& like) {
  if (fits_kernel(x, like)) return at::_grouped_mm(x.t(), y, ends_of(counts));
  const auto result = at::zeros_like(like);
  for_each_expert(counts, [&](std::int64_t expert, const auto& rows) {
    auto out = result[expert];
    if (rows(x).size(0) > 0) at::mm_out(out, rows(x).t(), rows(y));
  });
  return result;
}

struct GroupedLinear : torch::autograd::Function<GroupedLinear> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& counts) {
    context->save_for_backward({x, weight, counts});
    return product(x, weight.transpose(1, 2), counts);
  }

  static Tensors backward(AutogradContext* context, const Tensors& gradients) {
    const auto saved = context->get_saved_variables();
    const auto &x = saved[0], &weight = saved[1], &counts = saved[2];
    const auto gradient = gradients[0].contiguous();
    Tensors result(3);
    if (context->needs_input_grad(0)) result[0] = product(gradient, weight, counts);
    if (context->needs_input_grad(1)) result[1] = product_of_rows(gradient, x, counts, weight);
    return result;
  }
};

/// The same by columns, and a bias for each row of its expert.
struct GroupedByColumns : torch::autograd::Function<GroupedByColumns> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias, const at::Tensor& counts) {
    context->save_for_backward({x, weight, counts});
    auto y = product(x, weight, counts);
    if (!bias) return y;
    const auto experts = at::arange(weight.size(0), counts.options());
    return y.add_(bias->index_select(0, experts.repeat_interleave(counts, 0, x.size(0))));
  }

  static Tensors backward(AutogradContext* context, const Tensors& gradients) {
    const auto saved = context->get_saved_variables();
    const auto &x = saved[0], &weight = saved[1], &counts = saved[2];
    const auto gradient = gradients[0].contiguous();
    Tensors result(4);
    if (context->needs_input_grad(0)) result[0] = product(gradient, weight.transpose(1, 2), counts);
    if (context->needs_input_grad(1)) result[1] = product_of_rows(x, gradient, counts, weight);
    if (context->needs_input_grad(2)) result[2] = sums_of_rows(gradient, counts);
    return result;
  }

 private:
  /// [rows, n] -> [experts, n]. By the kernel for matrices, in an order that does not change.
  static at::Tensor sums_of_rows(const at::Tensor& rows, const at::Tensor& counts) {
    constexpr std::int64_t kColumns = 8;  // as many as its kernel takes at least
    const auto ones = at::ones({rows.size(0), kColumns}, rows.options());
    const auto like = at::zeros({counts.size(0), kColumns, rows.size(1)}, rows.options());
    return product_of_rows(ones, rows, counts, like).select(1, 0).contiguous();
  }
};

/// (up + 1) * gate * sigmoid(alpha * gate), gate at most `limit` and up within it; gate and up lie by turns.
struct ClampedGate : torch::autograd::Function<ClampedGate> {
  struct Parts {
    at::Tensor gate, up;
  };
  static Parts parts_of(const at::Tensor& both) {
    const auto pairs = both.unflatten(-1, {-1, 2});
    return {pairs.select(-1, 0), pairs.select(-1, 1)};
  }

  static at::Tensor forward(AutogradContext* context, const at::Tensor& both, double alpha, double limit) {
    context->save_for_backward({both});
    context->saved_data["alpha"] = alpha;
    context->saved_data["limit"] = limit;
    const auto [gate, up] = parts_of(both);
    const auto clamped = gate.clamp_max(limit);
    return (clamped * alpha).sigmoid_().mul_(clamped).mul_(up.clamp(-limit, limit).add_(1));
  }

  static Tensors backward(AutogradContext* context, const Tensors& gradients) {
    const auto both = context->get_saved_variables()[0];
    const auto alpha = context->saved_data["alpha"].toDouble(), limit = context->saved_data["limit"].toDouble();
    const auto [gate, up] = parts_of(both);
    const auto clamped = gate.clamp_max(limit), factor = (clamped * alpha).sigmoid_();
    const auto result = at::empty_like(both);
    const auto to = parts_of(result);
    {  // statements of their own, since what a statement makes on its way lives until its end
      auto slope = 1 - factor;
      slope.mul_(clamped * alpha);
      slope.add_(1).mul_(factor);
      slope.mul_(up.clamp(-limit, limit).add_(1));
      at::mul_out(const_cast<at::Tensor&>(to.gate), slope, gradients[0]).masked_fill_(gate > limit, 0);
    }
    at::mul_out(const_cast<at::Tensor&>(to.up), factor.mul_(clamped), gradients[0]).masked_fill_(up.abs() > limit, 0);
    return {result, {}, {}};
  }
};

/// Rows in another order, each of x's `copies` times: y[i] = x[from[i] / copies], where y[to[j]] is the j-th copy. Sums
/// copies in backward by their order, while index_add would add on CUDA as it comes.
struct Reorder : torch::autograd::Function<Reorder> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& from, const at::Tensor& to,
                            std::int64_t copies) {
    context->save_for_backward({to});
    context->saved_data["copies"] = copies;
    return x.index_select(0, copies == 1 ? from : from.div(copies, "floor"));
  }

  static Tensors backward(AutogradContext* context, const Tensors& gradients) {
    const auto to = context->get_saved_variables()[0];
    const auto copies = context->saved_data["copies"].toInt();
    auto gradient = gradients[0].index_select(0, to);
    if (copies > 1) gradient = gradient.view({-1, copies, gradient.size(1)}).sum(1);
    return {gradient, {}, {}, {}};
  }
};

/// The order that sorts `keys`, and its inverse. Stable, so that equal inputs give equal bits.
std::pair<at::Tensor, at::Tensor> sorted_by(const at::Tensor& keys) {
  const auto order = std::get<1>(keys.sort(/*stable=*/true, 0, /*descending=*/false));
  return {order, at::empty_like(order).scatter_(0, order, at::arange(order.numel(), order.options()))};
}

at::Tensor count_of_each(const at::Tensor& numbers, std::int64_t size) {
  return at::zeros({size}, numbers.options()).scatter_add_(0, numbers, at::ones_like(numbers));
}

struct GroupHolder : torch::CustomClassHolder {
  train::Collectives group;
};

/// `rows` over `ranks` as evenly as can be: where a rehearsal, which has no values, sends the tokens of experts.
std::vector<std::int64_t> even_parts(std::int64_t rows, std::int64_t ranks) {
  std::vector<std::int64_t> parts(static_cast<std::size_t>(ranks), rows / ranks);
  for (std::int64_t rank = 0; rank < rows % ranks; ++rank) ++parts[static_cast<std::size_t>(rank)];
  return parts;
}

/// Rows to the ranks of a group; backward the other way.
struct AllToAll : torch::autograd::Function<AllToAll> {
  using Rows = std::vector<std::int64_t>;

  static at::Tensor send(train::Collectives group, const at::Tensor& rows, const Rows& from, const Rows& to) {
    auto sizes = rows.sizes().vec();
    sizes[0] = std::accumulate(from.begin(), from.end(), std::int64_t{0});
    auto received = at::empty(sizes, rows.options());
    group.all_to_all(received, rows.contiguous(), from, to, "tokens of experts").wait();
    return received;
  }

  static at::Tensor forward(AutogradContext* context, const at::Tensor& rows,
                            const c10::intrusive_ptr<GroupHolder>& holder, const Rows& from, const Rows& to) {
    context->saved_data["holder"] = c10::IValue::make_capsule(holder);
    context->saved_data["from"] = from;
    context->saved_data["to"] = to;
    return send(holder->group, rows, from, to);
  }

  static Tensors backward(AutogradContext* context, const Tensors& gradients) {
    const auto holder = c10::static_intrusive_pointer_cast<GroupHolder>(context->saved_data["holder"].toCapsule());
    const auto from = context->saved_data["from"].toIntVector(), to = context->saved_data["to"].toIntVector();
    return {send(holder->group, gradients[0], to, from), {}, {}, {}};
  }
};

}  // namespace

at::Tensor grouped_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& counts) {
  TORCH_CHECK(x.dim() == 2 && weight.dim() == 3 && x.size(1) == weight.size(2) && counts.numel() == weight.size(0),
              "grouped_linear of rows ", x.sizes(), ", matrices ", weight.sizes(), " and ", counts.numel(),
              " counts; expected [rows, in], [experts, out, in] and one count for each expert");
  return GroupedLinear::apply(x.to(weight.scalar_type()).contiguous(), weight, counts);
}

at::Tensor grouped_linear_by_columns(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                                     const at::Tensor& counts) {
  TORCH_CHECK(x.dim() == 2 && weight.dim() == 3 && x.size(1) == weight.size(1) && counts.numel() == weight.size(0),
              "grouped_linear_by_columns of rows ", x.sizes(), ", matrices ", weight.sizes(), " and ", counts.numel(),
              " counts; expected [rows, in], [experts, in, out] and one count for each expert");
  return GroupedByColumns::apply(x.to(weight.scalar_type()).contiguous(), weight,
                                 bias.defined() ? std::optional(bias) : std::nullopt, counts);
}

RouterImpl::RouterImpl(std::int64_t width, const ExpertConfig& config)
    : weight(register_parameter("weight", torch::empty({config.experts, width}))), config_(config) {
  if (config.routing == Routing::SoftmaxOfBest) bias = register_parameter("bias", torch::empty({config.experts}));
  if (config.routing != Routing::Sigmoid) return;
  correction = register_buffer("e_score_correction_bias", torch::zeros({config.experts}, at::kFloat));
}

void RouterImpl::to(torch::Dtype dtype, bool non_blocking) {
  const auto kept = correction.defined() ? correction.detach().alias() : at::Tensor();
  Module::to(dtype, non_blocking);
  if (kept.defined()) correction.set_data(kept);
}

Routes RouterImpl::forward(const at::Tensor& tokens) {
  switch (config_.routing) {
    case Routing::Softmax:
      return by_softmax(tokens);
    case Routing::Sigmoid:
      return by_sigmoid(tokens);
    default:
      return of_best(tokens);
  }
}

Routes RouterImpl::of_best(const at::Tensor& tokens) const {
  const auto logits = torch::linear(tokens, weight, bias);
  const auto [best, experts] = logits.topk(config_.per_token, -1);
  if (config_.routing == Routing::SigmoidOfBest)
    return {{}, best.to(at::kFloat).sigmoid().to(logits.scalar_type()), experts};
  return {at::softmax(logits, -1, at::kFloat), at::softmax(best, -1), experts};
}

Routes RouterImpl::by_softmax(const at::Tensor& tokens) const {
  const auto logits = torch::linear(tokens, weight);
  const auto probabilities = at::softmax(logits, -1, at::kFloat);
  auto [weights, experts] = probabilities.topk(config_.per_token, -1);
  if (config_.normalize) weights = weights / weights.sum(-1, true);
  return {probabilities, config_.mixtral_names ? weights : weights.to(logits.scalar_type()), experts};
}

at::Tensor RouterImpl::within_groups(const at::Tensor& scores) const {
  if (config_.groups == config_.groups_used) return scores;
  const auto groups = scores.unflatten(-1, {config_.groups, config_.experts / config_.groups});
  const auto of_group = std::get<0>(groups.topk(2, -1)).sum(-1);
  const auto best = std::get<1>(of_group.topk(config_.groups_used, -1));
  const auto others = at::ones(of_group.sizes(), of_group.options().dtype(at::kBool)).scatter_(-1, best, false);
  return groups.masked_fill(others.unsqueeze(-1), -std::numeric_limits<double>::infinity()).flatten(-2);
}

Routes RouterImpl::by_sigmoid(const at::Tensor& tokens) const {
  const auto scores = torch::linear(tokens.to(at::kFloat), weight.to(at::kFloat)).sigmoid();
  const auto experts = std::get<1>(within_groups(scores.detach() + correction).topk(config_.per_token, -1));
  auto weights = scores.gather(1, experts);
  if (config_.normalize) weights = weights / (weights.sum(-1, true) + 1e-20);
  return {{}, weights * config_.scale, experts};
}

ExpertsImpl::ExpertsImpl(std::int64_t width, const ExpertConfig& config) : config_(config), experts_(config.experts) {
  const auto matrices = [&](std::int64_t in, std::int64_t out) {
    return config.by_columns ? torch::empty({config.experts, in, out}) : torch::empty({config.experts, out, in});
  };
  gate_up_proj = register_parameter("gate_up_proj", matrices(width, 2 * config.width));
  if (config.biases)
    gate_up_proj_bias = register_parameter("gate_up_proj_bias", torch::empty({config.experts, 2 * config.width}));
  down_proj = register_parameter("down_proj", matrices(config.width, width));
  if (config.biases) down_proj_bias = register_parameter("down_proj_bias", torch::empty({config.experts, width}));
}

at::Tensor ExpertsImpl::hidden(const at::Tensor& rows, const at::Tensor& counts) const {
  const auto both = config_.by_columns ? grouped_linear_by_columns(rows, gate_up_proj, gate_up_proj_bias, counts)
                                       : grouped_linear(rows, gate_up_proj, counts);
  if (config_.gate == ExpertGate::Clamped) return ClampedGate::apply(both, config_.alpha, config_.limit);
  const auto parts = both.chunk(2, -1);
  return swiglu(parts[0], parts[1]);
}

at::Tensor ExpertsImpl::answer(const at::Tensor& rows, const at::Tensor& counts) const {
  if (config_.by_columns) return grouped_linear_by_columns(hidden(rows, counts), down_proj, down_proj_bias, counts);
  return grouped_linear(hidden(rows, counts), down_proj, counts);
}

at::Tensor ExpertsImpl::answer_across(const at::Tensor& rows, const at::Tensor& counts) {
  const auto ranks = group_.size(), here = experts_ / ranks;
  const std::vector<std::int64_t> equal(static_cast<std::size_t>(ranks), here);
  auto theirs = at::empty_like(counts);  // [ranks * here]: how many rows each rank has for each expert here
  group_.all_to_all(theirs, counts, equal, equal, "tokens for each expert").wait();
  const auto by_rank = [&](const at::Tensor& numbers) {
    if (numbers.is_meta()) return even_parts(rows.size(0), ranks);
    const auto sums = numbers.view({ranks, here}).sum(1).to(at::kCPU);
    return std::vector<std::int64_t>(sums.const_data_ptr<std::int64_t>(), sums.const_data_ptr<std::int64_t>() + ranks);
  };
  const auto to = by_rank(counts), from = by_rank(theirs);

  auto holder = c10::make_intrusive<GroupHolder>();
  holder->group = group_;
  const auto received = AllToAll::apply(rows, holder, from, to);
  const auto expert = at::arange(here, counts.options()).repeat({ranks}).repeat_interleave(theirs, 0, received.size(0));
  const auto [order, inverse] = sorted_by(expert);  // they lie by rank
  const auto answers = answer(Reorder::apply(received, order, inverse, 1), theirs.view({ranks, here}).sum(0));
  return AllToAll::apply(Reorder::apply(answers, inverse, order, 1), holder, to, from);
}

/// Answers the others' tokens and none of its own. Zeros; the empty sums bring backward to the exchange, the router and
/// what is before them, whatever the gradient of the zeros is.
at::Tensor ExpertsImpl::answer_others(const at::Tensor& tokens, const Routes& routes) {
  const auto none = at::zeros({experts_}, routes.experts.options());
  const auto sorted = answer_across(tokens.narrow(0, 0, 0), none);
  const auto nothing = sorted.sum().to(tokens.scalar_type()) + routes.weights.narrow(0, 0, 0).sum();
  return at::zeros_like(tokens) + nothing.to(tokens.scalar_type());
}

at::Tensor ExpertsImpl::forward(const at::Tensor& tokens, const Routes& routes) {
  if (silent_ && *silent_) return answer_others(tokens, routes);
  const auto per_token = routes.experts.size(1);
  const auto experts = routes.experts.flatten();
  const auto [order, inverse] = sorted_by(experts);
  const auto counts = count_of_each(experts, experts_);
  const bool scales = config_.routing == Routing::SigmoidOfBest;  // what goes in, not what comes out
  const auto rows =
      scales ? Reorder::apply((tokens.unsqueeze(1) * routes.weights.unsqueeze(-1)).flatten(0, 1), order, inverse, 1)
             : Reorder::apply(tokens, order, inverse, per_token);
  const auto sorted = group_.size() > 1 ? answer_across(rows, counts) : answer(rows, counts);
  const auto answers = Reorder::apply(sorted, inverse, order, 1).view({-1, per_token, tokens.size(1)});
  const auto weighted = scales ? answers : answers * routes.weights.unsqueeze(-1);
  return weighted.sum(1).to(tokens.scalar_type());
}

SparseBlockImpl::SparseBlockImpl(std::int64_t width, const ExpertConfig& config)
    : gate(register_module(config.router, Router(width, config))),
      experts(register_module("experts", Experts(width, config))) {
  TORCH_CHECK(config.per_token >= 1 && config.per_token <= config.experts, "a token goes to ", config.per_token, " of ",
              config.experts, " experts; expected at least 1 and at most all");
  if (config.shared_width == 0) return;
  const DecoderConfig sizes{.width = width};
  shared = register_module(config.shared, std::make_shared<MlpImpl>(sizes, config.shared_width));
}

std::tuple<at::Tensor, at::Tensor> SparseBlockImpl::forward(const at::Tensor& input, const at::Tensor& counted) {
  const auto tokens = input.reshape({-1, input.size(-1)});
  const auto routes = gate(tokens);
  const auto balance = routed(routes, counted);
  auto answer = experts(tokens, routes).view(input.sizes());
  if (shared) answer = answer + std::get<0>(shared->forward(input, counted));
  return {answer, balance};
}

at::Tensor SparseBlockImpl::routed(const Routes& routes, const at::Tensor& counted) {
  auto probability = routes.probabilities;
  if (!probability.defined()) return {};
  auto chosen = at::ones(routes.experts.sizes(), probability.options().requires_grad(false));
  if (counted.defined()) {
    const auto counts = counted.reshape({-1, 1}).to(at::kFloat);
    probability = probability * counts;
    chosen.mul_(counts);
  }
  const auto none = at::zeros({probability.size(1)}, chosen.options());
  return at::stack({none.scatter_add(0, routes.experts.flatten(), chosen.flatten()), probability.sum(0)});
}

}  // namespace sealift::trainer
