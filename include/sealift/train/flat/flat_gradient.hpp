// SPDX-License-Identifier: Apache-2.0
// One buffer of gradients that are reduced together: those of a flat, or a bucket of replicated parameters.
// Takes what autograd leaves on each parameter, sums micro-batches, reduces over the mesh, and hands the mean to what
// the optimizer steps. Knows nothing of units: `reducer` says when.
// Gradients are divided by the world size as they are copied in, which costs no pass of its own; fp16, which that could
// underflow, is divided by about the root of it before the sum and by the rest after (as FSDP1 and FSDP2 do).
#pragma once

#include <sealift/train/flat/flat_param.hpp>

#include <map>
#include <set>

namespace sealift::train {

/// A parameter, and the leaf that holds this rank's part of it; the same tensor when replicated.
struct GradientSlot {
  std::string name;
  at::Tensor parameter, leaf;
};

enum class Reduction {
  Idle,        ///< from construction and from `finish` on
  Scattering,  ///< from `start` on: the sum over the shard group is on its way, or this rank is its own
  Summing,     ///< from `advance` on: the sum over the copies is on its way
};

class FlatGradient {
 public:
  struct Options {
    std::string label = {};                           ///< for messages
    std::optional<at::ScalarType> reduce_dtype = {};  ///< unset: the leaves' own
    bool on_host = false;                             ///< means wait in host memory until `hand_over`
    bool always_used = false;                         ///< ranks need not agree on which parameters had a gradient
  };

  /// `layout` places slot i of the buffer at placement i; its shards are those of the groups' mesh.
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

  /// Takes the gradient that autograd left on parameter `index` and adds it to those of earlier micro-batches.
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

  /// Gradients were collected that no reduction has taken yet.
  bool has_any_gradient() const { return used_ > 0; }
  bool has_gradient(std::size_t index) const { return has_gradient_[index]; }

  /// A reduction has something to do: new gradients, or a partial sum that the copies have not seen.
  bool pending() const { return has_any_gradient() || partial_.defined() || options_.always_used; }

  /// Starts summing the collected gradients over the ranks; over the copies only when `over_copies`, else the partial
  /// sum waits for a reduction that does. Collective over the shard group.
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
    // Fresh each time, so that it goes when the optimizer's zero_grad lets go of it.
    reduced_ = torch::empty({layout_.shard_numel}, whole_.options());
    in_context([&] { ticket_ = groups_.shard.reduce_scatter(reduced_, whole_, options_.label, used_hash()); });
  }

  /// Goes on to the sum over the copies, where there are any. Collective over the replicate group.
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
        if (has_gradient_[i]) owed_.insert(i);
      }
    } else {
      if (after_ != 1) reduced.div_(after_);
      for (std::size_t i = 0; i < slots_.size(); ++i) {
        if (has_gradient_[i] || owed_.contains(i)) give(i, reduced);
      }
      owed_.clear();
    }
    forget();
  }

  /// Sets the gradients of the leaves from the means that waited in host memory.
  void hand_over() {
    at::NoGradGuard no_grad;
    for (auto& [index, mean] : waiting_)
      add_to(slots_[index].leaf.mutable_grad(), mean.to(slots_[index].leaf.device()));
    waiting_.clear();
  }

  /// Forgets what was collected and not reduced, after a backward pass that failed.
  void drop() {
    reduced_.reset();
    partial_.reset();
    owed_.clear();
    ticket_ = {};
    reduction_ = Reduction::Idle;
    forget();
  }

  /// Slot `index` had a gradient on some rank, so it gets a mean here too.
  void set_used(std::size_t index) { has_gradient_[index] = true; }

 private:
  /// Adds this rank's part of the mean of slot `index` to where it belongs.
  void give(std::size_t index, const at::Tensor& reduced) {
    auto& leaf = slots_[index].leaf;
    auto mean = layout_.fragment_of(reduced, index, groups_.shard.rank(), slots_[index].parameter.sizes());
    if (mean.scalar_type() != leaf.scalar_type()) mean = mean.to(leaf.scalar_type());
    if (options_.on_host && !leaf.device().is_cpu()) return add_to(waiting_[index], mean.to(at::kCPU));
    if (options_.on_host) return add_to(waiting_[index], mean.clone());
    if (mean.device() != leaf.device()) mean = mean.to(leaf.device());
    add_to(leaf.mutable_grad(), mean);
  }

  static void add_to(at::Tensor& sum, const at::Tensor& term) {
    // Not a view to autograd, which zero_grad() would refuse to detach.
    sum.defined() ? sum.add_(term) : sum = term.variable_data();
  }

  void forget() {
    has_gradient_.assign(slots_.size(), false);
    used_ = 0;
  }

  /// Says which parameters had no gradient here when the ranks disagree about that.
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

  /// Parameters without a gradient and the padding count as zero in the sum.
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

  /// Reuses the buffer of the last step once the optimizer's `zero_grad` has let go of it.
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
  std::size_t used_ = 0;                       ///< how many of them
  std::set<std::size_t> owed_;                 ///< slots whose gradient lies in `partial_` only
  std::map<std::size_t, at::Tensor> waiting_;  ///< means in host memory, by slot
  at::Tensor whole_;    ///< [padded], summed over micro-batches; freed by the reduction when sharded
  at::Tensor reduced_;  ///< what the reduction in flight ends in: `whole_`, or [padded / shards]
  at::Tensor partial_;  ///< [padded / shards], summed over the shard group but not yet over the copies
  Ticket ticket_;
};

}  // namespace sealift::train
