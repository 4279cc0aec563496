// SPDX-License-Identifier: Apache-2.0
// One flat: the parameters of a unit as one buffer, of which this rank keeps a shard and, while they are used, the
// whole. Moves between the two states below, and turns the gradients of a backward pass into gradients of the shard.
// Parameters keep their TensorImpl: they become views of the whole once, and only its storage is freed and refilled, so
// handles held by modules, ties and users stay valid. With one shard the whole *is* the shard and nothing ever moves.
#pragma once

#include <sealift/train/collectives.hpp>

namespace sealift::train {

/// A tensor and its path in the model.
struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

enum class Residence {
  Sharded,    ///< from construction and after `reshard`: the whole has no memory, reading a parameter throws or faults
  Unsharded,  ///< from `unshard` on: parameters hold the values of all ranks' shards
};

/// Parameters of one dtype that are either all trainable or all frozen.
class FlatParam {
 public:
  /// Takes over the parameters' memory; `broadcast` starts from rank 0's values. Collective if so.
  FlatParam(std::vector<NamedTensor> parameters, Groups groups, bool broadcast)
      : parameters_(std::move(parameters)), groups_(std::move(groups)), has_gradient_(parameters_.size(), false) {
    at::NoGradGuard no_grad;
    std::vector<std::vector<std::int64_t>> shapes;
    for (const auto& [name, tensor] : parameters_) shapes.push_back(tensor.sizes().vec());
    layout_ = make_flat_layout(shapes, groups_.mesh.shard);

    whole_ = torch::zeros({layout_.padded_numel()}, parameters_.front().tensor.options().requires_grad(false));
    for (std::size_t i = 0; i < size(); ++i) view(whole_, i).copy_(parameters_[i].tensor);
    if (broadcast) groups_.world.broadcast(whole_).wait();
    shard_ = whole_;
    if (layout_.shards > 1) {
      shard_ = whole_.narrow(0, groups_.shard.rank() * layout_.shard_numel, layout_.shard_numel).clone();
    }
    for (std::size_t i = 0; i < size(); ++i) {
      auto& parameter = parameters_[i].tensor;
      parameter.set_data(view(whole_, i));
      auto leaf = fragment(shard_, i).detach().set_requires_grad(parameter.requires_grad());
      fragments_.push_back({parameters_[i].name, leaf});
    }
    if (layout_.shards > 1) release(whole_);
  }

  FlatParam(const FlatParam&) = delete;
  FlatParam& operator=(const FlatParam&) = delete;

  std::size_t size() const { return parameters_.size(); }
  bool trainable() const { return parameters_.front().tensor.requires_grad(); }
  const FlatLayout& layout() const { return layout_; }
  const std::vector<NamedTensor>& parameters() const { return parameters_; }
  Residence residence() const { return residence_; }

  /// This rank's part of each parameter, as leaves for an optimizer; [rows, ...] where whole rows, else [numel].
  const std::vector<NamedTensor>& fragments() const { return fragments_; }

  /// Gathers the whole from all shards, unless it is there and no shard was written since. Collective over the shard
  /// group.
  void unshard() {
    if (layout_.shards == 1 || residence_ == Residence::Unsharded) return;
    refill(whole_);
    groups_.shard.all_gather(whole_, shard_).wait();
    residence_ = Residence::Unsharded;
  }

  /// Frees the whole.
  void reshard() {
    if (layout_.shards == 1 || residence_ == Residence::Sharded) return;
    release(whole_);
    residence_ = Residence::Sharded;
  }

  /// Takes the gradient that autograd left on parameter `index` and adds it to those of earlier micro-batches.
  void collect_gradient(std::size_t index) {
    at::NoGradGuard no_grad;
    auto& gradient = parameters_[index].tensor.mutable_grad();
    TORCH_CHECK(gradient.layout() == at::kStrided, "parameter ", parameters_[index].name,
                " has a sparse gradient; flats hold dense ones, so make its embedding with sparse(false)");
    if (!has_any_gradient()) make_room(whole_gradient_, layout_.padded_numel());
    auto sum = view(whole_gradient_, index);
    has_gradient_[index] ? sum.add_(gradient) : sum.copy_(gradient);
    has_gradient_[index] = true;
    gradient.reset();
  }

  /// Gradients were collected that no reduction has taken yet.
  bool has_any_gradient() const {
    return std::find(has_gradient_.begin(), has_gradient_.end(), true) != has_gradient_.end();
  }

  /// Starts summing the collected gradients over all ranks. Collective over the shard and the replicate group.
  void start_reduce() {
    at::NoGradGuard no_grad;
    zero_unwritten();
    reduced_ = whole_gradient_;
    if (layout_.shards > 1) {
      make_room(shard_gradient_, layout_.shard_numel);
      reduced_ = shard_gradient_;
      ticket_ = groups_.shard.reduce_scatter(reduced_, whole_gradient_);
      if (groups_.mesh.replicate > 1) ticket_.wait();
    }
    if (groups_.mesh.replicate > 1) ticket_ = groups_.replicate.all_reduce(reduced_);
  }

  /// Waits for the sum and adds the mean over ranks to the gradients of the fragments.
  void finish_reduce() {
    at::NoGradGuard no_grad;
    ticket_.wait();
    if (layout_.shards > 1) whole_gradient_.reset();
    if (groups_.mesh.world_size() > 1) reduced_.div_(static_cast<double>(groups_.mesh.world_size()));
    for (std::size_t i = 0; i < size(); ++i) {
      auto mean = fragment(reduced_, i);
      // Not used on any rank: no gradient, as on one process, so that an optimizer leaves the parameter alone. A
      // parameter that only other ranks used shows by its values.
      const bool used = has_gradient_[i] || (mean.numel() > 0 && mean.count_nonzero().item<std::int64_t>() > 0);
      if (!used) continue;
      auto& gradient = fragments_[i].tensor.mutable_grad();
      // Not a view to autograd, which zero_grad() would refuse to detach.
      gradient.defined() ? gradient.add_(mean) : gradient = mean.variable_data();
    }
    reduced_.reset();
    has_gradient_.assign(size(), false);
  }

 private:
  /// Parameter `index` in a buffer of the whole's size, in the parameter's shape.
  at::Tensor view(const at::Tensor& whole, std::size_t index) const {
    const auto& place = layout_.placements[index];
    return whole.narrow(0, place.offset, place.numel).view(parameters_[index].tensor.sizes());
  }

  /// This rank's part of parameter `index` in a buffer of the shard's size.
  at::Tensor fragment(const at::Tensor& shard, std::size_t index) const {
    const auto part = layout_.fragment(index, groups_.shard.rank());
    const auto& place = layout_.placements[index];
    auto piece = shard.narrow(0, part.in_shard, part.numel);
    if (part.in_parameter % place.row != 0 || part.numel % place.row != 0) return piece;
    auto shape = parameters_[index].tensor.sizes().vec();
    if (!shape.empty()) shape[0] = part.numel / place.row;
    return shape.empty() && part.numel == 0 ? piece : piece.view(shape);
  }

  /// Parameters without a gradient and the padding count as zero in the sum.
  void zero_unwritten() {
    std::int64_t end = 0;
    for (std::size_t i = 0; i < size(); ++i) {
      const auto& place = layout_.placements[i];
      whole_gradient_.narrow(0, end, place.offset - end).zero_();
      end = place.offset + place.numel;
      if (!has_gradient_[i]) view(whole_gradient_, i).zero_();
    }
    whole_gradient_.narrow(0, end, layout_.padded_numel() - end).zero_();
  }

  /// Reuses the buffer of the last step once the optimizer's `zero_grad` has let go of it.
  void make_room(at::Tensor& buffer, std::int64_t numel) const {
    if (!buffer.defined() || buffer.storage().use_count() > 1) buffer = torch::empty({numel}, shard_.options());
  }

  static void release(at::Tensor& tensor) {
    auto* storage = tensor.storage().unsafeGetStorageImpl();
    storage->set_data_ptr_noswap(at::DataPtr(nullptr, storage->device()));
    storage->set_nbytes(0);
  }

  static void refill(at::Tensor& tensor) {
    auto* storage = tensor.storage().unsafeGetStorageImpl();
    const auto bytes = static_cast<std::size_t>(tensor.numel()) * tensor.element_size();
    storage->set_data_ptr_noswap(storage->allocator()->allocate(bytes));
    storage->set_nbytes(bytes);
  }

  std::vector<NamedTensor> parameters_;
  std::vector<NamedTensor> fragments_;
  Groups groups_;
  FlatLayout layout_;
  Residence residence_ = Residence::Sharded;
  at::Tensor whole_;           ///< [padded]; has no memory while sharded
  at::Tensor shard_;           ///< [padded / shards], this rank's; the same tensor as `whole_` when there is one shard
  at::Tensor whole_gradient_;  ///< [padded], summed over micro-batches; freed by the reduction when sharded
  at::Tensor shard_gradient_;  ///< [padded / shards]
  at::Tensor reduced_;         ///< the one of the two that the reduction in flight ends in
  std::vector<bool> has_gradient_;  ///< per parameter: collected since the last reduction
  Ticket ticket_;
};

}  // namespace sealift::train
