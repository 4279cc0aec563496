// SPDX-License-Identifier: Apache-2.0
// The bodies of leaf_gradients.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/flat/leaf_gradients.hpp>

namespace sealift::train {

SEALIFT_BODY LeafGradients::LeafGradients(std::vector<GradientSlot>& slots, const FlatLayout& layout, std::int64_t rank,
                                          bool on_host)
    : slots_(slots), layout_(layout), rank_(rank), on_host_(on_host), hidden_(slots.size()) {}

SEALIFT_BODY void LeafGradients::add(const at::Tensor& mean, std::set<std::size_t> slots) {
  const bool to_host = on_host_ || slots_.front().leaf.is_cpu();
  if (!mean.is_cpu() && to_host) {
    land();  // one at a time, so that the device holds no more
    copy_.start(mean);
    landing_ = std::move(slots);
    return;
  }
  for (const auto i : slots) accumulate(i, mean);
}

SEALIFT_BODY void LeafGradients::land() {
  at::NoGradGuard no_grad;
  const auto mean = copy_.finish();
  for (const auto i : std::exchange(landing_, {})) accumulate(i, mean);
}

SEALIFT_BODY void LeafGradients::flush() {
  at::NoGradGuard no_grad;
  for (auto& [index, mean] : waiting_) {
    add_to(slots_[index].leaf.mutable_grad(), mean.to(slots_[index].leaf.device()));
  }
  waiting_.clear();
}

SEALIFT_BODY void LeafGradients::hide() {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    auto& [name, parameter, leaf] = slots_[i];
    if (parameter.is_same(leaf)) hidden_[i] = std::exchange(leaf.mutable_grad(), at::Tensor());
  }
}

SEALIFT_BODY void LeafGradients::show() {
  at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    auto mean = std::exchange(hidden_[i], at::Tensor());
    if (!mean.defined()) continue;
    auto& gradient = slots_[i].leaf.mutable_grad();
    if (gradient.defined()) mean.add_(gradient);
    gradient = std::move(mean);
  }
}

SEALIFT_BODY void LeafGradients::drop() {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (hidden_[i].defined()) slots_[i].leaf.mutable_grad() = std::exchange(hidden_[i], at::Tensor());
  }
  copy_.finish();
  landing_.clear();
  waiting_.clear();
}

SEALIFT_BODY void LeafGradients::accumulate(std::size_t index, const at::Tensor& mean) {
  auto& leaf = slots_[index].leaf;
  auto part = layout_.fragment_of(mean, index, rank_, slots_[index].parameter.sizes());
  if (part.scalar_type() != leaf.scalar_type()) part = part.to(leaf.scalar_type());
  if (on_host_) return add_to(waiting_[index], part.clone());
  if (part.device() != leaf.device()) part = part.to(leaf.device());
  // A replicated parameter may get another gradient in this pass, which autograd must not add to a mean.
  add_to(slots_[index].parameter.is_same(leaf) ? hidden_[index] : leaf.mutable_grad(), part);
}

SEALIFT_BODY void LeafGradients::add_to(at::Tensor& sum, const at::Tensor& term) {
  // Autograd must not see a view here: zero_grad() would refuse to detach it.
  sum.defined() ? sum.add_(term) : sum = term.variable_data();
}

}  // namespace sealift::train
