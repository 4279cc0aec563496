// SPDX-License-Identifier: Apache-2.0
// Where reduced gradients end: on the leaves that the optimizer steps, or in host memory until the step.
// `flat_gradient` adds the means of its buffer here and asks for nothing else.
#pragma once

#include <sealift/train/flat/flat_layout.hpp>
#include <sealift/train/flat/gradient_mark.hpp>
#include <sealift/train/flat/host_copy.hpp>

#include <map>
#include <set>
#include <vector>

namespace sealift::train {

class LeafGradients {
 public:
  /// Slot i lies at placement i of `layout`, of which this is shard `rank`. Both must outlive this.
  /// `on_host`: means wait in host memory until `flush`.
  LeafGradients(std::vector<GradientSlot>& slots, const FlatLayout& layout, std::int64_t rank, bool on_host)
      : slots_(slots), layout_(layout), rank_(rank), on_host_(on_host), hidden_(slots.size()) {}

  /// Adds this rank's part `mean`, [padded / shards], to the gradients of the leaves of `slots`; what goes from a
  /// device to the host is added by `land`.
  void add(const at::Tensor& mean, std::set<std::size_t> slots) {
    const bool to_host = on_host_ || slots_.front().leaf.is_cpu();
    if (!mean.is_cpu() && to_host) {
      land();  // one at a time, so that the device holds no more
      copy_.start(mean);
      landing_ = std::move(slots);
      return;
    }
    for (const auto i : slots) accumulate(i, mean);
  }

  /// Waits for means that are on their way to the host, and adds them to the gradients there.
  void land() {
    at::NoGradGuard no_grad;
    const auto mean = copy_.finish();
    for (const auto i : std::exchange(landing_, {})) accumulate(i, mean);
  }

  /// Adds the means that wait in host memory to the gradients of the leaves.
  void flush() {
    at::NoGradGuard no_grad;
    for (auto& [index, mean] : waiting_) {
      add_to(slots_[index].leaf.mutable_grad(), mean.to(slots_[index].leaf.device()));
    }
    waiting_.clear();
  }
  bool waits(std::size_t index) const { return waiting_.contains(index); }

  /// During a backward pass: a replicated parameter is its own leaf, so autograd would add to the mean of an earlier
  /// pass and the sum over the ranks would contain it again. `show` adds it to the new one.
  void hide() {
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      auto& [name, parameter, leaf] = slots_[i];
      if (parameter.is_same(leaf)) hidden_[i] = std::exchange(leaf.mutable_grad(), at::Tensor());
    }
  }
  void show() {
    at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      auto mean = std::exchange(hidden_[i], at::Tensor());
      if (!mean.defined()) continue;
      auto& gradient = slots_[i].leaf.mutable_grad();
      if (gradient.defined()) mean.add_(gradient);
      gradient = std::move(mean);
    }
  }

  /// Forgets what waits for slot `index`.
  void drop(std::size_t index) { waiting_.erase(index); }
  /// Forgets all that waits, and puts hidden means back as they were.
  void drop() {
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (hidden_[i].defined()) slots_[i].leaf.mutable_grad() = std::exchange(hidden_[i], at::Tensor());
    }
    copy_.finish();
    landing_.clear();
    waiting_.clear();
  }

 private:
  /// Adds this rank's part of the mean of slot `index` to the leaf's gradient, or to the sum that waits on the host.
  void accumulate(std::size_t index, const at::Tensor& mean) {
    auto& leaf = slots_[index].leaf;
    auto part = layout_.fragment_of(mean, index, rank_, slots_[index].parameter.sizes());
    if (part.scalar_type() != leaf.scalar_type()) part = part.to(leaf.scalar_type());
    if (on_host_) return add_to(waiting_[index], part.clone());
    if (part.device() != leaf.device()) part = part.to(leaf.device());
    // A replicated parameter may get another gradient in this pass, which autograd must not add to a mean.
    add_to(slots_[index].parameter.is_same(leaf) ? hidden_[index] : leaf.mutable_grad(), part);
  }

  static void add_to(at::Tensor& sum, const at::Tensor& term) {
    // Autograd must not see a view here: zero_grad() would refuse to detach it.
    sum.defined() ? sum.add_(term) : sum = term.variable_data();
  }

  std::vector<GradientSlot>& slots_;
  const FlatLayout& layout_;
  const std::int64_t rank_;
  const bool on_host_;
  std::map<std::size_t, at::Tensor> waiting_;  ///< means in host memory, by slot
  HostCopy copy_;                              ///< of means on their way to the host
  std::set<std::size_t> landing_;              ///< their slots
  std::vector<at::Tensor> hidden_;             ///< per slot: the mean of earlier passes, during one
};

}  // namespace sealift::train
