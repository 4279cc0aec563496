// SPDX-License-Identifier: Apache-2.0
// One flat: the parameters of a unit as one buffer. This rank keeps a shard, and the whole while parameters are used.
// A `unit` moves it between the states of `Residence`; `flat_gradient` does the same for gradients.
// Parameters keep their TensorImpl: they become views of the whole once, and only its storage is freed and refilled, so
// that handles held by modules, ties and users stay valid.
#pragma once

#include <sealift/train/comm/groups.hpp>
#include <sealift/train/flat/buffer_pool.hpp>
#include <sealift/train/flat/flat_layout.hpp>

namespace sealift::train {

/// A tensor and its path in the model.
struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

enum class Residence {
  Sharded,       ///< after construction and `reshard`: the whole has no memory, reading a parameter throws or faults
  Gathering,     ///< after `start_unshard`: the whole has memory, its values are in flight
  Unsharded,     ///< after `finish_unshard`: parameters hold the values of all ranks' shards
  GroupSharded,  ///< after `reshard_to_group`: as Sharded, with a larger part kept, so that fewer ranks gather it again
};

/// Parameters of one dtype that are either all trainable or all frozen.
class FlatParam {
 public:
  struct Options {
    std::string unit = {};                             ///< for messages
    std::optional<at::ScalarType> compute_dtype = {};  ///< of the whole; unset: the parameters' own
    bool on_host = false;                              ///< the shard lives in host memory
    bool pin_memory = false;                           ///< ... page-locked
    bool broadcast = true;                             ///< start from rank 0's values
    std::int64_t reshard_group = 0;                    ///< ranks of the group of `reshard_to_group`; 0: none
  };

  /// Takes over the parameters' memory. Collective when it broadcasts.
  FlatParam(std::vector<NamedTensor> parameters, Groups groups, Options options)
      : parameters_(std::move(parameters)), groups_(std::move(groups)), options_(std::move(options)) {
    at::NoGradGuard no_grad;
    std::vector<std::vector<std::int64_t>> shapes;
    for (const auto& [name, tensor] : parameters_) shapes.push_back(tensor.sizes().vec());
    layout_ = make_flat_layout(shapes, groups_.mesh.shard);
    if (options_.reshard_group > 1) group_ = groups_.subgroup(options_.reshard_group);

    auto values =
        detail::flat_buffer(layout_.padded_numel(), parameters_.front().tensor.options().requires_grad(false)).zero_();
    for (std::size_t i = 0; i < size(); ++i) view(values, i).copy_(parameters_[i].tensor);
    if (options_.broadcast) groups_.world.broadcast(values, options_.unit).wait();
    shard_ = values.narrow(0, groups_.shard.rank() * layout_.shard_numel, layout_.shard_numel);
    shard_ = options_.on_host ? to_host(shard_, options_.pin_memory) : shard_.clone();

    const auto dtype = options_.compute_dtype.value_or(values.scalar_type());
    whole_ = dtype == values.scalar_type() ? std::move(values)
                                           : detail::flat_buffer(values.numel(), values.options().dtype(dtype));
    for (std::size_t i = 0; i < size(); ++i) {
      auto& parameter = parameters_[i].tensor;
      parameter.set_data(view(whole_, i));
      auto leaf = layout_.fragment_of(shard_, i, groups_.shard.rank(), parameter.sizes()).detach();
      fragments_.push_back({parameters_[i].name, leaf.set_requires_grad(parameter.requires_grad())});
    }
    release(whole_);
  }

  FlatParam(const FlatParam&) = delete;
  FlatParam& operator=(const FlatParam&) = delete;

  std::size_t size() const { return parameters_.size(); }
  bool trainable() const { return parameters_.front().tensor.requires_grad(); }
  const FlatLayout& layout() const { return layout_; }
  const std::vector<NamedTensor>& parameters() const { return parameters_; }
  Residence residence() const { return residence_; }
  bool has_memory() const { return residence_ == Residence::Gathering || residence_ == Residence::Unsharded; }

  /// This rank's part of each parameter, as leaves for an optimizer; [rows, ...] where whole rows, else [numel].
  const std::vector<NamedTensor>& fragments() const { return fragments_; }

  /// Starts to gather the whole from all shards, unless it has memory. Collective over the shard group.
  void start_unshard() {
    if (has_memory()) return;
    at::NoGradGuard no_grad;
    refill(whole_);
    if (residence_ == Residence::GroupSharded) {
      ticket_ = group_.all_gather(whole_, source_, options_.unit);
    } else if (layout_.shards == 1) {
      whole_.copy_(shard_, /*non_blocking=*/true);
    } else {
      source_ = shard_.to(whole_.options(), /*non_blocking=*/true);  // the same tensor when there is nothing to convert
      ticket_ = groups_.shard.all_gather(whole_, source_, options_.unit);
    }
    residence_ = Residence::Gathering;
  }

  /// Parameters may be used when this returns.
  void finish_unshard() {
    if (residence_ != Residence::Gathering) return;
    ticket_.wait();
    source_.reset();
    residence_ = Residence::Unsharded;
  }

  void unshard() {
    start_unshard();
    finish_unshard();
  }

  /// Frees the whole, and the part that `reshard_to_group` keeps.
  void reshard() {
    if (residence_ == Residence::Gathering) finish_unshard();
    if (residence_ == Residence::Unsharded) release(whole_);
    source_.reset();
    residence_ = Residence::Sharded;
  }

  /// Frees the whole except this rank's part in a smaller group, from which backward gathers it again.
  void reshard_to_group() {
    if (residence_ != Residence::Unsharded) return;
    const auto numel = layout_.padded_numel() / group_.size();
    source_ = whole_.narrow(0, group_.rank() * numel, numel).clone();
    release(whole_);
    residence_ = Residence::GroupSharded;
  }

 private:
  /// Parameter `index` in a buffer of the whole's size, in the parameter's shape.
  at::Tensor view(const at::Tensor& whole, std::size_t index) const {
    return layout_.view_of(whole, index, parameters_[index].tensor.sizes());
  }

  static at::Tensor to_host(const at::Tensor& tensor, bool pin) {
    auto host = torch::empty(tensor.sizes(), tensor.options().device(at::kCPU).pinned_memory(pin && tensor.is_cuda()));
    return host.copy_(tensor);
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
  Options options_;
  FlatLayout layout_;
  Collectives group_;  ///< of `reshard_to_group`
  Residence residence_ = Residence::Sharded;
  detail::BufferPool::User memory_;
  at::Tensor whole_;   ///< [padded] in the compute dtype; has no memory while sharded
  at::Tensor shard_;   ///< [padded / shards], this rank's, in the parameters' dtype
  at::Tensor source_;  ///< sent by a gather: the shard on the device in the compute dtype, or the group's part
  Ticket ticket_;
};

}  // namespace sealift::train
