// SPDX-License-Identifier: Apache-2.0
#include "trainer/models/label_log_probabilities.hpp"

#include "trainer/kernels/head.hpp"
#include "trainer/models/token_batch.hpp"

#include <ATen/autocast_mode.h>
#include <sealift/train.hpp>

#include <algorithm>
#include <limits>
#include <utility>

namespace sealift::trainer {
namespace {

using Tensors = torch::autograd::variable_list;
using Context = torch::autograd::AutogradContext;
using Weights = c10::intrusive_ptr<TokenWeights>;

/// Above this the head's gradient is not made in forward: a sum over pieces of tokens is fp32, whatever the head is.
constexpr std::int64_t kMostSumBytes = std::int64_t{1} << 30;

/// Calls visit(first, count) for each piece of `size`.
template <class Visit>
void for_each_piece(std::int64_t size, std::int64_t piece, const Visit& visit) {
  for (std::int64_t first = 0; first < size; first += piece) visit(first, std::min(piece, size - first));
}

/// A product in fp32, in its own memory where it is that already, else in its place, and capped where there is a cap.
at::Tensor fp32_logits(at::Tensor product, double cap) {
  auto logits = product.to(at::kFloat);
  return cap > 0 ? logits.div_(cap).tanh_().mul_(cap) : logits;
}

/// The same of tokens · rowsᵀ.
at::Tensor fp32_logits(const at::Tensor& tokens, const at::Tensor& rows, double cap) {
  return fp32_logits(at::mm(tokens, rows.t()), cap);
}

/// What a gradient by capped logits is multiplied by, to be one by plain logits; undefined without a cap.
at::Tensor slope_of_cap(const at::Tensor& capped, double cap) {
  return cap > 0 ? (capped / cap).square_().neg_().add_(1) : at::Tensor();
}

/// In place: logits become softmax - [is label], which is -d log softmax(logits)[label] / d logits. `values` [tokens]
/// get the log-probabilities, NaN for a label outside of the columns, since on a device nobody looks; `normalizers` log
/// sum exp.
void take_of_rows(at::Tensor logits, const at::Tensor& labels, at::Tensor values, at::Tensor normalizers) {
  const auto columns = labels.clamp(0, logits.size(1) - 1);
  const auto own = logits.gather(1, columns.unsqueeze(1)).squeeze(1);
  const auto most = logits.amax(1);
  const auto sums = logits.sub_(most.unsqueeze(1)).exp_().sum(1);
  at::log_out(normalizers, sums).add_(most);
  at::sub_out(values, own, normalizers);
  values.masked_fill_(columns != labels, std::numeric_limits<double>::quiet_NaN());
  logits.div_(sums.unsqueeze(1));
  logits.scatter_add_(1, columns.unsqueeze(1), at::full({}, -1, logits.options()).expand({logits.size(0), 1}));
}

/// The same, on the CPU for as many rows at a time as stay in the cache through all of these operations.
void take_log_probabilities(const at::Tensor& logits, const at::Tensor& labels, const at::Tensor& values,
                            const at::Tensor& normalizers) {
  constexpr std::int64_t kCached = std::int64_t{1} << 18;
  const auto rows = logits.is_cpu() ? std::max<std::int64_t>(1, kCached / logits.size(1)) : logits.size(0);
  for_each_piece(logits.size(0), rows, [&](std::int64_t first, std::int64_t count) {
    const auto part = [&](const at::Tensor& all) { return all.narrow(0, first, count); };
    take_of_rows(part(logits), part(labels), part(values), part(normalizers));
  });
}

/// softmax - [is label] of the logits, in the states' dtype; `values` and `normalizers` as take_of_rows has them. By
/// one kernel, in the product's own memory, where the device has it.
at::Tensor slopes_of(const at::Tensor& states, const at::Tensor& weight, const at::Tensor& labels,
                     const at::Tensor& values, const at::Tensor& normalizers, bool wanted, double cap) {
  auto product = at::mm(states, weight.t());
  if (!(cap > 0) && kernels::head(product, labels, values, normalizers, wanted)) return product;
  const auto logits = fp32_logits(std::move(product), cap);  // moved: nobody holds a narrow one beside the wide
  const auto slope = wanted ? slope_of_cap(logits, cap) : at::Tensor();
  take_log_probabilities(logits, labels, values, normalizers);
  if (slope.defined()) logits.mul_(slope);
  return wanted ? logits.to(states.scalar_type()) : at::Tensor();
}

/// What forward made for backward; all but `normalizers` may be undefined.
struct Made {
  at::Tensor values;            ///< fp32 [tokens]
  at::Tensor normalizers;       ///< fp32 [tokens]: log sum exp of the logits
  at::Tensor hidden_gradients;  ///< [tokens, width], for a weight of 1 each
  at::Tensor weight_gradient;   ///< fp32 [vocabulary, width], for weights of 1
};

Made compute(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& labels,
             std::int64_t logits_at_a_time, double cap, bool for_hidden, bool for_weight) {
  const auto tokens = hidden.size(0);
  const auto fp32 = hidden.options().dtype(at::kFloat);
  Made made{.values = at::empty({tokens}, fp32), .normalizers = at::empty({tokens}, fp32)};
  if (for_hidden) made.hidden_gradients = at::empty_like(hidden);
  // Written by the first piece, so that it needs not be zeroed before.
  if (for_weight) made.weight_gradient = tokens > 0 ? at::empty(weight.sizes(), fp32) : at::zeros(weight.sizes(), fp32);
  const auto piece = std::max<std::int64_t>(1, logits_at_a_time / weight.size(0));
  for_each_piece(tokens, piece, [&](std::int64_t first, std::int64_t count) {
    const auto states = hidden.narrow(0, first, count);
    const auto slopes = slopes_of(states, weight, labels.narrow(0, first, count), made.values.narrow(0, first, count),
                                  made.normalizers.narrow(0, first, count), for_hidden || for_weight, cap);  // negative
    if (!for_hidden && !for_weight) return;
    if (for_hidden) {
      auto rows = made.hidden_gradients.narrow(0, first, count);
      at::addmm_out(rows, rows, slopes, weight, /*beta=*/0, /*alpha=*/-1);
    }
    if (!for_weight) return;
    if (train::detail::adds_products(states, at::kFloat)) {
      train::detail::add_product(made.weight_gradient, slopes.t(), states, /*beta=*/first == 0 ? 0 : 1, /*alpha=*/-1);
    } else {
      const auto sum = at::mm(slopes.t(), states);
      first == 0 ? at::mul_out(made.weight_gradient, sum, at::scalar_tensor(-1)) : made.weight_gradient.sub_(sum);
    }
  });
  return made;
}

/// The head's gradient with the logits computed again: a few rows of it at a time and all tokens, so that each row is
/// made once and no sum is rounded. `scales` fp32 [tokens]: the loss's gradients by the log-probabilities.
at::Tensor weight_gradient(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& labels,
                           const at::Tensor& normalizers, const at::Tensor& scales, std::int64_t logits_at_a_time,
                           double cap) {
  const auto gradient = at::empty_like(weight);
  const auto piece = std::max<std::int64_t>(256, logits_at_a_time / std::max<std::int64_t>(1, hidden.size(0)));
  for_each_piece(weight.size(0), piece, [&](std::int64_t first, std::int64_t count) {
    auto logits = fp32_logits(hidden, weight.narrow(0, first, count), cap);
    const auto slope = slope_of_cap(logits, cap);
    logits.sub_(normalizers.unsqueeze(1)).exp_().mul_(scales.neg().unsqueeze(1));
    const auto here = (labels >= first) & (labels < first + count);
    const auto at_label = at::where(here, scales, at::zeros({}, scales.options()));
    logits.scatter_add_(1, (labels - first).clamp(0, count - 1).unsqueeze(1), at_label.unsqueeze(1));
    if (slope.defined()) logits.mul_(slope);
    auto rows = gradient.narrow(0, first, count);
    at::mm_out(rows, logits.to(hidden.scalar_type()).t(), hidden);
  });
  return gradient;
}

/// Whether all elements are one in memory, as in the gradient of a sum.
bool is_one_number(const at::Tensor& tensor) {
  const auto sizes = tensor.sizes(), strides = tensor.strides();
  bool one = true;
  for (std::size_t i = 0; i < sizes.size(); ++i) one = one && (sizes[i] <= 1 || strides[i] == 0);
  return one || tensor.numel() == 0;
}

/// Values at `places` of a tensor of `size`, zeros elsewhere. A gradient that is one number in memory stays one.
struct Spread : torch::autograd::Function<Spread> {
  static at::Tensor forward(Context* context, const at::Tensor& values, const at::Tensor& places, std::int64_t size) {
    context->save_for_backward({places});
    return at::zeros({size}, values.options()).index_copy_(0, places, values);
  }

  static Tensors backward(Context* context, const Tensors& gradients) {
    const auto places = context->get_saved_variables()[0];
    const auto& gradient = gradients[0];
    if (gradient.numel() > 0 && is_one_number(gradient)) {
      return {gradient.narrow(0, 0, 1).expand({places.numel()}), {}, {}};
    }
    return {gradient.index_select(0, places), {}, {}};
  }
};

struct LabelLogProbabilities : torch::autograd::Function<LabelLogProbabilities> {
  /// hidden [tokens, width], labels [tokens] -> fp32 [tokens]
  static at::Tensor forward(Context* context, const at::Tensor& hidden, const at::Tensor& weight,
                            const at::Tensor& labels, std::int64_t logits_at_a_time, const Weights& weights, double cap,
                            bool with_gradients) {
    const bool for_hidden = with_gradients && hidden.requires_grad(),
               for_weight = with_gradients && weight.requires_grad();
    const bool sums = for_weight && weights && weights->are_equal && weight.numel() * 4 <= kMostSumBytes;
    const auto made = compute(hidden, weight, labels, logits_at_a_time, cap, for_hidden, sums);
    if (with_gradients) {
      context->save_for_backward(
          {hidden, weight, labels, made.normalizers, made.hidden_gradients, made.weight_gradient});
    }
    context->saved_data["logits_at_a_time"] = logits_at_a_time;
    context->saved_data["cap"] = cap;
    context->saved_data["weights"] = weights ? c10::IValue::make_capsule(weights) : c10::IValue();
    return made.values;
  }

  static Tensors backward(Context* context, const Tensors& gradients) {
    const auto saved = context->get_saved_variables();
    const auto &hidden = saved[0], &weight = saved[1], &labels = saved[2], &of_hidden = saved[4];
    auto of_weight = saved[5];
    const auto scales = gradients[0].to(at::kFloat);
    Tensors result(7);
    // Multiplied in fp32: a scale in the states' dtype would be off by the same for all.
    if (of_hidden.defined()) result[0] = (of_hidden * scales.unsqueeze(1)).to(of_hidden.scalar_type());
    if (!context->needs_input_grad(1)) return result;
    const bool are_equal = is_one_number(scales) || (scales.is_cpu() && scales.min().equal(scales.max()));
    if (const auto& weights = context->saved_data["weights"]; !weights.isNone()) {
      c10::static_intrusive_pointer_cast<TokenWeights>(weights.toCapsule())->are_equal = are_equal;
    }
    if (of_weight.defined() && are_equal) {
      const auto scale = scales.numel() == 0 ? at::zeros({}, scales.options()) : scales[0];
      result[1] = (of_weight * scale).to(weight.scalar_type());
    } else {
      result[1] =
          weight_gradient(hidden, weight, labels, saved[3], scales, context->saved_data["logits_at_a_time"].toInt(),
                          context->saved_data["cap"].toDouble());
    }
    return result;
  }
};

/// As torch::linear would compute under autocast, which does not reach into a function of one's own.
at::Tensor as_autocast(const at::Tensor& tensor) {
  const auto device = tensor.device().type();
  if (!at::autocast::is_autocast_available(device)) return tensor;
  return at::autocast::is_autocast_enabled(device) ? tensor.to(at::autocast::get_autocast_dtype(device)) : tensor;
}

/// Throws for a label outside of the vocabulary, where looking costs nothing.
void check_labels(const at::Tensor& labels, std::int64_t vocabulary) {
  if (!labels.is_cpu() || labels.numel() == 0) return;
  const auto least = labels.min().item<std::int64_t>(), most = labels.max().item<std::int64_t>();
  TORCH_CHECK(least >= 0 && most < vocabulary, "labels from ", least, " to ", most, "; expected ", kNoLabel,
              " or 0 to ", vocabulary - 1, ", the model's vocabulary");
}

}  // namespace

at::Tensor label_log_probabilities(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& labels,
                                   std::int64_t logits_at_a_time, const c10::intrusive_ptr<TokenWeights>& weights,
                                   const std::optional<RowShape>& shape, double cap) {
  const auto width = weight.size(1);
  TORCH_CHECK(hidden.size(-1) == width && hidden.numel() == labels.numel() * width, "hidden states ", hidden.sizes(),
              " with labels ", labels.sizes(), " and a head ", weight.sizes(), "; expected [tokens, width], [tokens], ",
              "[vocabulary, width]");
  // Prompts are not trained on: the head need not see their tokens.
  const auto flat = labels.flatten();
  const auto labelled = (shape ? *shape : row_shape_of({}, labels)).labelled;
  const bool all = !labelled.defined();
  const auto wanted = all ? flat : flat.index_select(0, labelled);
  check_labels(wanted, weight.size(0));
  const auto rows = hidden.reshape({-1, width});
  const auto values =
      LabelLogProbabilities::apply(as_autocast(all ? rows : rows.index_select(0, labelled)), as_autocast(weight),
                                   wanted, logits_at_a_time, weights, cap, at::GradMode::is_enabled());
  if (all) return values.view(labels.sizes());
  return Spread::apply(values, labelled, flat.numel()).view(labels.sizes());
}

}  // namespace sealift::trainer
