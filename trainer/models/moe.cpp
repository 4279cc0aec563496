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

RouterImpl::RouterImpl(std::int64_t width, const ExpertConfig& config)
    : weight(register_parameter("weight", torch::empty({config.experts, width}))),
      per_token_(config.per_token),
      normalize_(config.normalize),
      rounds_(!config.mixtral_names) {}

Routes RouterImpl::forward(const at::Tensor& tokens) {
  const auto logits = torch::linear(tokens, weight);
  const auto probabilities = at::softmax(logits, -1, at::kFloat);
  auto [weights, experts] = probabilities.topk(per_token_, -1);
  if (normalize_) weights = weights / weights.sum(-1, true);
  return {probabilities, rounds_ ? weights.to(logits.scalar_type()) : weights, experts};
}

ExpertsImpl::ExpertsImpl(std::int64_t width, const ExpertConfig& config)
    : gate_up_proj(register_parameter("gate_up_proj", torch::empty({config.experts, 2 * config.width, width}))),
      down_proj(register_parameter("down_proj", torch::empty({config.experts, width, config.width}))),
      experts_(config.experts) {}

at::Tensor ExpertsImpl::answer(const at::Tensor& rows, const at::Tensor& counts) const {
  const auto parts = grouped_linear(rows, gate_up_proj, counts).chunk(2, -1);
  return grouped_linear(swiglu(parts[0], parts[1]), down_proj, counts);
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
  const auto rows = Reorder::apply(tokens, order, inverse, per_token);
  const auto sorted = group_.size() > 1 ? answer_across(rows, counts) : answer(rows, counts);
  const auto answers = Reorder::apply(sorted, inverse, order, 1).view({-1, per_token, tokens.size(1)});
  return (answers * routes.weights.unsqueeze(-1)).sum(1).to(tokens.scalar_type());
}

SparseBlockImpl::SparseBlockImpl(std::int64_t width, const ExpertConfig& config)
    : gate(register_module("gate", Router(width, config))),
      experts(register_module("experts", Experts(width, config))) {
  TORCH_CHECK(config.per_token >= 1 && config.per_token <= config.experts, "a token goes to ", config.per_token, " of ",
              config.experts, " experts; expected at least 1 and at most all");
}

std::tuple<at::Tensor, at::Tensor> SparseBlockImpl::forward(const at::Tensor& input, const at::Tensor& counted) {
  const auto tokens = input.reshape({-1, input.size(-1)});
  const auto routes = gate(tokens);
  auto probability = routes.probabilities;
  auto chosen = at::ones(routes.experts.sizes(), probability.options().requires_grad(false));
  if (counted.defined()) {
    const auto counts = counted.reshape({-1, 1}).to(at::kFloat);
    probability = probability * counts;
    chosen.mul_(counts);
  }
  const auto none = at::zeros({probability.size(1)}, chosen.options());
  const auto routed = at::stack({none.scatter_add(0, routes.experts.flatten(), chosen.flatten()), probability.sum(0)});
  return {experts(tokens, routes).view(input.sizes()), routed};
}

}  // namespace sealift::trainer
