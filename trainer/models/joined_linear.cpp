// SPDX-License-Identifier: Apache-2.0
#include "trainer/models/joined_linear.hpp"

#include <ATen/autocast_mode.h>
#include <sealift/train.hpp>

#include <algorithm>

namespace sealift::trainer {
namespace {

using Tensors = torch::autograd::variable_list;
using Context = torch::autograd::AutogradContext;

/// The function's tensors as autograd counts them: the input, then four of each part.
constexpr std::size_t kOfPart = 4;

struct Numbers {
  static std::size_t weight(std::size_t part) { return 1 + kOfPart * part; }
  static std::size_t bias(std::size_t part) { return 2 + kOfPart * part; }
  static std::size_t a(std::size_t part) { return 3 + kOfPart * part; }
  static std::size_t b(std::size_t part) { return 4 + kOfPart * part; }
};

at::Tensor rows_of(const at::Tensor& tensor) {
  return tensor.reshape({-1, tensor.size(-1)});
}

/// The tensors by these numbers, of which autograd takes those alone that are there.
class Given {
 public:
  /// `places`: where a number's tensor is in `there`, -1 where it is undefined.
  Given(at::TensorList there, const std::vector<std::int64_t>& places) : there_(there), places_(places) {}

  at::Tensor operator[](std::size_t number) const {
    return places_[number] < 0 ? at::Tensor() : there_[static_cast<std::size_t>(places_[number])];
  }

 private:
  at::TensorList there_;
  const std::vector<std::int64_t>& places_;
};

/// Where each part's columns begin among those of all adapters' low-rank outputs, and their sum; no part without one.
std::vector<std::int64_t> low_columns(const Given& all, std::size_t parts) {
  std::vector<std::int64_t> columns{0};
  for (std::size_t i = 0; i < parts; ++i) {
    const auto a = all[Numbers::a(i)];
    columns.push_back(columns.back() + (a.defined() ? a.size(0) : 0));
  }
  return columns;
}

/// The `a` of all parts as one matrix; itself where there is one.
at::Tensor joined_a(const Given& all, std::size_t parts) {
  Tensors factors;
  for (std::size_t i = 0; i < parts; ++i) {
    if (all[Numbers::a(i)].defined()) factors.push_back(all[Numbers::a(i)]);
  }
  return factors.empty() ? at::Tensor() : factors.size() == 1 ? factors.front() : at::cat(factors);
}

/// Uninitialized [..., out] of each part, the first `together` of them as slices of one buffer.
Tensors outputs_of(const Given& all, std::size_t parts, std::int64_t together) {
  const auto input = all[0];
  auto sizes = input.sizes().vec();
  const auto width = [&](std::size_t part) { return all[Numbers::weight(part)].size(0); };
  const auto make = [&](std::int64_t columns) {
    sizes.back() = columns;
    return at::empty(sizes, input.options());
  };
  Tensors outputs;
  std::int64_t columns = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(together); ++i) columns += width(i);
  const auto buffer = together > 0 ? make(columns) : at::Tensor();
  for (std::size_t i = 0, begin = 0; i < parts; begin += static_cast<std::size_t>(width(i++))) {
    outputs.push_back(i < static_cast<std::size_t>(together)
                          ? buffer.narrow(-1, static_cast<std::int64_t>(begin), width(i))
                          : make(width(i)));
  }
  return outputs;
}

/// The gradient of an input, to which products add.
class InputGradient {
 public:
  void add(const at::Tensor& gradient, const at::Tensor& weight) {
    sum_.defined() ? static_cast<void>(sum_.addmm_(gradient, weight))
                   : static_cast<void>(sum_ = at::mm(gradient, weight));
  }
  at::Tensor take(at::IntArrayRef sizes) const { return sum_.defined() ? sum_.view(sizes) : sum_; }

 private:
  at::Tensor sum_;
};

/// factor · (left · right), a tensor of its own
at::Tensor scaled_product(const at::Tensor& left, const at::Tensor& right, double factor) {
  auto out = at::empty({left.size(0), right.size(1)}, left.options());
  return at::addmm_out(out, out, left, right, /*beta=*/0, /*alpha=*/factor);
}

struct JoinedLinear : torch::autograd::Function<JoinedLinear> {
  static Tensors forward(Context* context, at::TensorList there, const std::vector<std::int64_t>& places,
                         const std::vector<double>& scalings, std::int64_t together) {
    // Slices of one buffer are outputs of their own, not views that autograd follows.
    const at::AutoDispatchBelowADInplaceOrView plain;
    const Given all(there, places);
    const auto parts = scalings.size();
    const auto x = rows_of(all[0]);
    const auto columns = low_columns(all, parts);
    const auto a = joined_a(all, parts);
    const auto low = a.defined() ? at::mm(x, a.t()) : at::Tensor();
    auto outputs = outputs_of(all, parts, together);
    for (std::size_t i = 0; i < parts; ++i) {
      const auto weight = all[Numbers::weight(i)], bias = all[Numbers::bias(i)], b = all[Numbers::b(i)];
      auto y = outputs[i].flatten(0, -2);
      bias.defined() ? at::addmm_out(y, bias, x, weight.t()) : at::mm_out(y, x, weight.t());
      if (b.defined()) y.addmm_(low.narrow(1, columns[i], b.size(1)), b.t(), 1, scalings[i]);
    }
    keep(context, all, a, low, parts);
    context->saved_data["scalings"] = scalings;
    context->saved_data["columns"] = columns;
    context->saved_data["places"] = places;
    context->set_materialize_grads(false);
    return outputs;
  }

  static Tensors backward(Context* context, const Tensors& gradients) {
    const at::AutoDispatchBelowADInplaceOrView plain;
    const auto saved = context->get_saved_variables();
    const auto scalings = context->saved_data["scalings"].toDoubleVector();
    const auto columns = context->saved_data["columns"].toIntVector();
    const auto parts = scalings.size();
    const auto &input = saved[0], &a = saved[1], &low = saved[2];
    const auto x = input.defined() ? rows_of(input) : at::Tensor();
    const auto places = context->saved_data["places"].toIntVector();
    const auto is_there = [](std::int64_t place) { return place >= 0; };
    Tensors result(static_cast<std::size_t>(std::count_if(places.begin(), places.end(), is_there)) + 3);
    const auto wanted = [&](std::size_t number) {
      return places[number] >= 0 && context->needs_input_grad(static_cast<std::size_t>(places[number]));
    };
    const auto give = [&](std::size_t number, const at::Tensor& gradient) {
      result[static_cast<std::size_t>(places[number])] = gradient;
    };
    InputGradient of_input;
    at::Tensor of_low;
    std::vector<std::int64_t> sizes;
    for (std::size_t i = 0; i < parts; ++i) {
      if (!gradients[i].defined()) continue;
      const auto &weight = saved[3 + 2 * i], &b = saved[4 + 2 * i];
      const auto g = rows_of(gradients[i]);
      sizes = gradients[i].sizes().vec();
      if (wanted(0)) of_input.add(g, weight), sizes.back() = weight.size(1);
      if (wanted(Numbers::weight(i)) && !train::add_gradient_product(weight, g.t(), x)) {
        give(Numbers::weight(i), at::mm(g.t(), x));
      }
      if (wanted(Numbers::bias(i))) give(Numbers::bias(i), g.sum(0));
      if (!b.defined()) continue;
      if (!of_low.defined()) of_low = new_gradient_of(low, gradients);
      auto of_own = of_low.narrow(1, columns[i], b.size(1));
      at::addmm_out(of_own, of_own, g, b, /*beta=*/0, /*alpha=*/scalings[i]);
      if (wanted(Numbers::b(i)))
        give(Numbers::b(i), scaled_product(g.t(), low.narrow(1, columns[i], b.size(1)), scalings[i]));
    }
    if (of_low.defined()) {
      if (wanted(0)) of_input.add(of_low, a);
      const auto of_a = at::mm(of_low.t(), x);
      for (std::size_t i = 0; i < parts; ++i) {
        if (wanted(Numbers::a(i))) give(Numbers::a(i), of_a.narrow(0, columns[i], columns[i + 1] - columns[i]));
      }
    }
    if (wanted(0)) result[0] = of_input.take(sizes);
    return result;
  }

 private:
  /// What backward reads, and nothing else: the input only for what is trained.
  static void keep(Context* context, const Given& all, const at::Tensor& a, const at::Tensor& low, std::size_t parts) {
    bool trains = a.defined();
    for (std::size_t i = 0; i < parts; ++i) trains = trains || all[Numbers::weight(i)].requires_grad();
    Tensors kept{trains ? all[0] : at::Tensor(), a, low};
    for (std::size_t i = 0; i < parts; ++i) {
      kept.push_back(all[Numbers::weight(i)]);
      kept.push_back(all[Numbers::b(i)]);
    }
    context->save_for_backward(kept);
  }

  /// Zeros where not every part has a gradient to write.
  static at::Tensor new_gradient_of(const at::Tensor& low, const Tensors& gradients) {
    const bool all = std::all_of(gradients.begin(), gradients.end(), [](const auto& each) { return each.defined(); });
    return all ? at::empty_like(low) : at::zeros_like(low);
  }
};

}  // namespace

bool can_join(const at::Tensor& input, const std::vector<LinearPart>& parts) {
  const auto device = input.device().type();
  if (at::autocast::is_autocast_available(device) && at::autocast::is_autocast_enabled(device)) return false;
  const auto fits = [&](const at::Tensor& tensor) {
    return !tensor.defined() || tensor.scalar_type() == input.scalar_type();
  };
  return std::all_of(parts.begin(), parts.end(), [&](const auto& part) {
    return fits(part.weight) && fits(part.bias) && fits(part.a) && fits(part.b);
  });
}

std::vector<at::Tensor> joined_linear(const at::Tensor& input, const std::vector<LinearPart>& parts,
                                      std::int64_t together) {
  Tensors there;
  std::vector<std::int64_t> places;
  std::vector<double> scalings;
  const auto add = [&](const at::Tensor& tensor) {
    places.push_back(tensor.defined() ? static_cast<std::int64_t>(there.size()) : -1);
    if (tensor.defined()) there.push_back(tensor);
  };
  add(input);
  for (const auto& part : parts) {
    for (const auto* tensor : {&part.weight, &part.bias, &part.a, &part.b}) add(*tensor);
    scalings.push_back(part.scaling);
  }
  return JoinedLinear::apply(at::TensorList(there), places, scalings, together);
}

}  // namespace sealift::trainer
