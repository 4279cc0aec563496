// SPDX-License-Identifier: Apache-2.0
// The bodies of flat_gradient.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/flat/add_product.hpp>
#include <sealift/train/flat/flat_gradient.hpp>

namespace sealift::train {

SEALIFT_BODY FlatGradient::FlatGradient(std::vector<GradientSlot> slots, FlatLayout layout, Groups groups,
                                        Options options)
    : slots_(std::move(slots)),
      layout_(std::move(layout)),
      groups_(std::move(groups)),
      options_(std::move(options)),
      dtype_(options_.reduce_dtype.value_or(slots_.front().leaf.scalar_type())),
      has_gradient_(slots_.size(), false),
      marks_(slots_.size()),
      leaves_(slots_, layout_, groups_.shard.rank(), options_.on_host) {
  const auto world = static_cast<double>(groups_.mesh.world_size());
  before_ = world;
  if (dtype_ == at::kHalf) {
    for (before_ = 1; world / before_ > before_;) before_ *= 2;
  }
  scale_ = at::scalar_tensor(1 / before_, at::kDouble);
  std::vector<BufferPart> parts;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    parts.push_back({slots_[i].name, layout_.placements[i].offset, slots_[i].parameter.sizes().vec()});
  }
  transport_ = make_transport(options_.compression, dtype_, options_.power_sgd, std::move(parts));
}

SEALIFT_BODY void FlatGradient::collect(std::size_t index) {
  const auto& slot = slots_[index];
  TORCH_CHECK(slot.parameter.grad().layout() == at::kStrided, "parameter ", slot.name,
              " has a sparse gradient; flats hold dense ones, so make its embedding with sparse(false)");
  options_.late ? static_cast<void>(late_.insert(index)) : take(index);
}

SEALIFT_BODY bool FlatGradient::collect_product(std::size_t index, const at::Tensor& left, const at::Tensor& right) {
  if (options_.late || !detail::adds_products(left, dtype_)) return false;
  at::NoGradGuard no_grad;
  auto sum = place_of(index, left);
  detail::add_product(sum, left, right, has_gradient_[index] ? 1 : 0, 1 / before_);
  written(index);
  return true;
}

SEALIFT_BODY void FlatGradient::settle() {
  for (const auto index : std::exchange(late_, {})) take(index);
}

SEALIFT_BODY void FlatGradient::start(bool over_copies) {
  at::NoGradGuard no_grad;
  settle();
  if (!whole_.defined() || !has_any_gradient()) make_room(whole_, layout_.padded_numel(), slots_.front().parameter);
  zero_unwritten();
  over_copies_ = over_copies;
  reduction_ = Reduction::Scattering;
  groups_.observers->begin(Activity::Reduce, options_.label);
  if (layout_.shards == 1) {
    reduced_ = whole_;
    return advance();
  }
  // New each time, so that its memory is freed by the optimizer's zero_grad.
  const detail::UseBuffers use(options_.memory);
  reduced_ = options_.memory ? detail::flat_buffer(layout_.shard_numel, whole_.options())
                             : torch::empty({layout_.shard_numel}, whole_.options());
  in_context([&] {
    transfer_ =
        transport_->reduce_scatter(reduced_, std::exchange(whole_, {}), groups_.shard, options_.label, used_hash());
  });
}

SEALIFT_BODY void FlatGradient::advance() {
  if (reduction_ == Reduction::Summing) wait(/*for_all=*/false);
  if (reduction_ != Reduction::Scattering) return;
  at::NoGradGuard no_grad;
  reduction_ = Reduction::Summing;
  if (layout_.shards > 1) wait();
  if (groups_.mesh.replicate == 1 || !over_copies_) return;
  if (auto partial = std::exchange(partial_, {}); partial.defined()) reduced_.add_(partial);
  in_context([&] { transfer_ = transport_->all_reduce(reduced_, groups_.replicate, options_.label, used_hash()); });
}

SEALIFT_BODY void FlatGradient::finish(double divisor) {
  complete();
  give(divisor);
}

SEALIFT_BODY void FlatGradient::put_aside() {
  complete();
  // The buffer itself when nothing is sharded: what comes next must go elsewhere.
  if (layout_.shards == 1) whole_.reset();
}

SEALIFT_BODY void FlatGradient::give(double divisor) {
  at::NoGradGuard no_grad;
  const auto sum = std::exchange(aside_, {});
  const auto used = std::exchange(used_aside_, {});
  if (!sum.defined()) return;
  if (groups_.mesh.replicate > 1 && !over_copies_) {
    partial_ = partial_.defined() ? partial_.add_(sum) : sum;
    pending_.insert(used.begin(), used.end());
    return;
  }
  if (divisor != before_) sum.div_(divisor / before_);
  auto slots = std::exchange(pending_, {});
  slots.insert(used.begin(), used.end());
  leaves_.add(sum, std::move(slots));
}

SEALIFT_BODY void FlatGradient::drop() {
  for (const auto index : std::exchange(late_, {})) slots_[index].parameter.mutable_grad().reset();
  take_marks();
  leaves_.drop();
  reduced_.reset();
  partial_.reset();
  pending_.clear();
  aside_.reset();
  used_aside_.clear();
  transfer_ = {};
  reduction_ = Reduction::Idle;
  forget();
}

SEALIFT_BODY void FlatGradient::set_marks() {
  settle();
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    marks_[i].set(slots_[i], has_gradient_[i] || pending_.contains(i) || leaves_.waits(i));
  }
}

SEALIFT_BODY void FlatGradient::take_marks() {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (marks_[i].take(slots_[i])) drop(i);
  }
}

SEALIFT_BODY void FlatGradient::drop(std::size_t index) {
  at::NoGradGuard no_grad;
  if (has_gradient_[index]) --used_;
  has_gradient_[index] = false;
  if (pending_.erase(index) > 0) {
    layout_.fragment_of(partial_, index, groups_.shard.rank(), slots_[index].parameter.sizes()).zero_();
  }
  if (pending_.empty()) partial_.reset();
  leaves_.drop(index);
}

SEALIFT_BODY void FlatGradient::take(std::size_t index) {
  at::NoGradGuard no_grad;
  auto& gradient = slots_[index].parameter.mutable_grad();
  auto sum = place_of(index, gradient);
  if (has_gradient_[index]) {
    sum.add_(gradient, 1 / before_);
  } else {
    // In one pass over the memory, where the dtypes allow.
    dtype_ == gradient.scalar_type() ? at::mul_out(sum, gradient, scale_) : sum.copy_(gradient).mul_(scale_);
  }
  written(index);
  gradient.reset();
}

SEALIFT_BODY at::Tensor FlatGradient::place_of(std::size_t index, const at::Tensor& like) {
  if (used_ == 0) make_room(whole_, layout_.padded_numel(), like);
  return layout_.view_of(whole_, index, slots_[index].parameter.sizes());
}

SEALIFT_BODY void FlatGradient::written(std::size_t index) {
  if (!has_gradient_[index]) ++used_;
  has_gradient_[index] = true;
}

SEALIFT_BODY void FlatGradient::complete() {
  at::NoGradGuard no_grad;
  advance();
  wait();
  groups_.observers->end(Activity::Reduce, options_.label);
  reduction_ = Reduction::Idle;
  const auto reduced = std::exchange(reduced_, {});
  aside_ = aside_.defined() ? aside_.add_(reduced) : reduced;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (has_gradient_[i]) used_aside_.insert(i);
  }
  forget();
}

SEALIFT_BODY void FlatGradient::wait(bool for_all) {
  if (!for_all && !transfer_.has_next_round()) return;
  const ObservedScope waiting(*groups_.observers, Activity::ReduceWait, options_.label);
  const detail::UseBuffers use(options_.memory);
  for_all ? transfer_.wait() : transfer_.advance();
}

SEALIFT_BODY void FlatGradient::forget() {
  has_gradient_.assign(slots_.size(), false);
  used_ = 0;
}

template <class Body>
void FlatGradient::in_context(const Body& body) const {
  const detail::UseBuffers use(options_.memory);
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

SEALIFT_BODY void FlatGradient::zero_unwritten() {
  std::int64_t end = 0;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const auto& place = layout_.placements[i];
    whole_.narrow(0, end, place.offset - end).zero_();
    end = place.offset + place.numel;
    if (!has_gradient_[i]) whole_.narrow(0, place.offset, place.numel).zero_();
  }
  whole_.narrow(0, end, layout_.padded_numel() - end).zero_();
}

SEALIFT_BODY void FlatGradient::make_room(at::Tensor& buffer, std::int64_t numel, const at::Tensor& like) const {
  if (buffer.defined() && buffer.storage().use_count() == 1) return;
  const detail::UseBuffers use(options_.memory);
  buffer = detail::flat_buffer(numel, like.options().dtype(dtype_).requires_grad(false));
}

}  // namespace sealift::train
