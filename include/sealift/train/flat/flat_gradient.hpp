// SPDX-License-Identifier: Apache-2.0
// One buffer of gradients that are reduced together: those of a flat, or a bucket of replicated parameters.
// Takes the gradient that autograd leaves on each parameter, sums micro-batches, reduces over the mesh, and adds the
// mean to the gradients of the leaves that the optimizer steps. Knows nothing of units: `reducer` says when.
// Gradients are divided by the world size as they are copied in, which costs no pass of its own. Fp16 could underflow
// by that, so it is divided by about the square root before the sum and by the rest after (as FSDP1 and FSDP2 do).
#pragma once

#include <sealift/train/flat/flat_param.hpp>

#include <map>
#include <set>

namespace sealift::train {

/// Names a gradient from the hook that sees it to the buffer that reduces it: parameter `index` of flat `flat`. Flats
/// are numbered as the reducer gets them; replicated parameters are one flat, in the order of the model, whatever
/// bucket they are in.
struct ParameterId {
  std::size_t flat = 0, index = 0;
};

/// A parameter, and the leaf that holds this rank's part of it; the same tensor when replicated.
struct GradientSlot {
  std::string name;
  at::Tensor parameter, leaf;
};

enum class Reduction {
  Idle,        ///< after construction and `finish`
  Scattering,  ///< after `start`: the sum over the shard group is in flight, or there is nothing to sum
  Summing,     ///< after `advance`: the sum over the copies is in flight
};

class FlatGradient {
 public:
  struct Options {
    std::string label = {};                           ///< for messages
    std::optional<at::ScalarType> reduce_dtype = {};  ///< unset: that of the leaves
    bool on_host = false;                             ///< means wait in host memory until `flush`
    bool always_used = false;                         ///< ranks need not agree on which parameters had a gradient
  };

  /// Slot i of the buffer lies at placement i of `layout`, whose shards are those of the groups' mesh.
  FlatGradient(std::vector<GradientSlot> slots, FlatLayout layout, Groups groups, Options options)
      : slots_(std::move(slots)),
        layout_(std::move(layout)),
        groups_(std::move(groups)),
        options_(std::move(options)),
        dtype_(options_.reduce_dtype.value_or(slots_.front().leaf.scalar_type())),
        has_gradient_(slots_.size(), false) {
    const auto world = static_cast<double>(groups_.mesh.world_size());
    before_ = world;
    if (dtype_ == at::kHalf) {
      for (before_ = 1; world / before_ > before_;) before_ *= 2;
    }
    after_ = world / before_;
    scale_ = at::scalar_tensor(1 / before_, at::kDouble);
  }

  FlatGradient(const FlatGradient&) = delete;
  FlatGradient& operator=(const FlatGradient&) = delete;

  const std::vector<GradientSlot>& slots() const { return slots_; }
  const FlatLayout& layout() const { return layout_; }
  Reduction reduction() const { return reduction_; }

  /// Moves the gradient of parameter `index` into the buffer, added to those of earlier micro-batches.
  void collect(std::size_t index) {
    at::NoGradGuard no_grad;
    const auto& slot = slots_[index];
    auto& gradient = slot.parameter.mutable_grad();
    TORCH_CHECK(gradient.layout() == at::kStrided, "parameter ", slot.name,
                " has a sparse gradient; flats hold dense ones, so make its embedding with sparse(false)");
    if (!has_any_gradient()) make_room(whole_, layout_.padded_numel(), gradient);
    auto sum = layout_.view_of(whole_, index, slot.parameter.sizes());
    if (has_gradient_[index]) {
      sum.add_(gradient, 1 / before_);
    } else {
      // In one pass over the memory, where the dtypes allow.
      dtype_ == gradient.scalar_type() ? at::mul_out(sum, gradient, scale_) : sum.copy_(gradient).mul_(scale_);
      has_gradient_[index] = true;
      ++used_;
    }
    gradient.reset();
  }

  /// Whether gradients were collected since the last reduction.
  bool has_any_gradient() const { return used_ > 0; }
  bool has_gradient(std::size_t index) const { return has_gradient_[index]; }

  /// Whether there is something to reduce: new gradients, or a partial sum that was not summed over the copies.
  bool needs_reduction() const { return has_any_gradient() || partial_.defined() || options_.always_used; }

  /// Starts to sum the collected gradients over the shard group, and over the copies if `over_copies`; otherwise the
  /// partial sum waits for a reduction that does. Collective over the shard group.
  void start(bool over_copies) {
    at::NoGradGuard no_grad;
    if (!whole_.defined() || !has_any_gradient()) make_room(whole_, layout_.padded_numel(), slots_.front().parameter);
    zero_unwritten();
    over_copies_ = over_copies;
    reduction_ = Reduction::Scattering;
    if (layout_.shards == 1) {
      reduced_ = whole_;
      return advance();
    }
    // New each time, so that its memory is freed by the optimizer's zero_grad.
    reduced_ = torch::empty({layout_.shard_numel}, whole_.options());
    in_context([&] { ticket_ = groups_.shard.reduce_scatter(reduced_, whole_, options_.label, used_hash()); });
  }

  /// Starts the sum over the copies, if there are any. Collective over the replicate group.
  void advance() {
    if (reduction_ != Reduction::Scattering) return;
    at::NoGradGuard no_grad;
    reduction_ = Reduction::Summing;
    if (groups_.mesh.replicate == 1) return;
    ticket_.wait();
    if (layout_.shards > 1) whole_.reset();
    if (!over_copies_) return;
    if (auto partial = std::exchange(partial_, {}); partial.defined()) reduced_.add_(partial);
    in_context([&] { ticket_ = groups_.replicate.all_reduce(reduced_, options_.label, used_hash()); });
  }

  /// Waits for the mean and adds it to the gradients of the leaves.
  void finish() {
    at::NoGradGuard no_grad;
    advance();
    ticket_.wait();
    if (layout_.shards > 1) whole_.reset();
    reduction_ = Reduction::Idle;
    const auto reduced = std::exchange(reduced_, {});
    if (groups_.mesh.replicate > 1 && !over_copies_) {
      partial_ = partial_.defined() ? partial_.add_(reduced) : reduced.clone();
      for (std::size_t i = 0; i < slots_.size(); ++i) {
        if (has_gradient_[i]) pending_.insert(i);
      }
    } else {
      if (after_ != 1) reduced.div_(after_);
      for (std::size_t i = 0; i < slots_.size(); ++i) {
        if (has_gradient_[i] || pending_.contains(i)) accumulate(i, reduced);
      }
      pending_.clear();
    }
    forget();
  }

  /// Adds the means that wait in host memory to the gradients of the leaves.
  void flush() {
    at::NoGradGuard no_grad;
    for (auto& [index, mean] : on_host_) {
      add_to(slots_[index].leaf.mutable_grad(), mean.to(slots_[index].leaf.device()));
    }
    on_host_.clear();
  }

  /// Drops what was collected and not reduced, after a backward pass that failed.
  void drop() {
    reduced_.reset();
    partial_.reset();
    pending_.clear();
    ticket_ = {};
    reduction_ = Reduction::Idle;
    forget();
  }

  /// Some rank had a gradient for slot `index`, so it gets a mean on this rank too.
  void set_used(std::size_t index) { has_gradient_[index] = true; }

 private:
  /// Adds this rank's part of the mean of slot `index` to the leaf's gradient, or to the sum that waits on the host.
  void accumulate(std::size_t index, const at::Tensor& reduced) {
    auto& leaf = slots_[index].leaf;
    auto mean = layout_.fragment_of(reduced, index, groups_.shard.rank(), slots_[index].parameter.sizes());
    if (mean.scalar_type() != leaf.scalar_type()) mean = mean.to(leaf.scalar_type());
    if (options_.on_host && !leaf.device().is_cpu()) return add_to(on_host_[index], mean.to(at::kCPU));
    if (options_.on_host) return add_to(on_host_[index], mean.clone());
    if (mean.device() != leaf.device()) mean = mean.to(leaf.device());
    add_to(leaf.mutable_grad(), mean);
  }

  static void add_to(at::Tensor& sum, const at::Tensor& term) {
    // Autograd must not see a view here: zero_grad() would refuse to detach it.
    sum.defined() ? sum.add_(term) : sum = term.variable_data();
  }

  void forget() {
    has_gradient_.assign(slots_.size(), false);
    used_ = 0;
  }

  /// Adds to an error which parameters had no gradient on this rank, in case the ranks disagree about that.
  template <class Body>
  void in_context(const Body& body) const {
    try {
      body();
    } catch (c10::Error& error) {
      std::string missing;
      for (std::size_t i = 0; i < slots_.size(); ++i) {
        if (!has_gradient_[i]) missing += " " + slots_[i].name;
      }
      if (!missing.empty()) {
        error.add_context("here these parameters had no gradient:" + missing +
                          "; when ranks may use different ones, set find_unused_parameters");
      }
      throw;
    }
  }

  std::uint64_t used_hash() const { return options_.always_used ? 0 : std::hash<std::vector<bool>>{}(has_gradient_); }

  /// Parameters without a gradient, and the padding, count as zero in the sum.
  void zero_unwritten() {
    std::int64_t end = 0;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      const auto& place = layout_.placements[i];
      whole_.narrow(0, end, place.offset - end).zero_();
      end = place.offset + place.numel;
      if (!has_gradient_[i]) whole_.narrow(0, place.offset, place.numel).zero_();
    }
    whole_.narrow(0, end, layout_.padded_numel() - end).zero_();
  }

  /// Reuses the buffer of the last step if the optimizer's `zero_grad` has released it.
  void make_room(at::Tensor& buffer, std::int64_t numel, const at::Tensor& like) const {
    if (buffer.defined() && buffer.storage().use_count() == 1) return;
    buffer = detail::flat_buffer(numel, like.options().dtype(dtype_).requires_grad(false));
  }

  std::vector<GradientSlot> slots_;
  FlatLayout layout_;
  Groups groups_;
  Options options_;
  at::ScalarType dtype_;
  double before_ = 1, after_ = 1;  ///< divisors before and after the sum; their product is the world size
  Reduction reduction_ = Reduction::Idle;
  bool over_copies_ = true;
  at::Tensor scale_;                           ///< 1 / before_
  std::vector<bool> has_gradient_;             ///< per slot: collected since the last reduction
  std::size_t used_ = 0;                       ///< number of slots with a gradient
  std::set<std::size_t> pending_;              ///< slots whose gradient lies in `partial_` only
  std::map<std::size_t, at::Tensor> on_host_;  ///< means that wait for `flush`, by slot
  at::Tensor whole_;    ///< [padded], summed over micro-batches; freed by the reduction when sharded
  at::Tensor reduced_;  ///< result of the reduction in flight: `whole_`, or [padded / shards]
  at::Tensor partial_;  ///< [padded / shards], summed over the shard group but not yet over the copies
  Ticket ticket_;
};

}  // namespace sealift::train
