// SPDX-License-Identifier: Apache-2.0
// One flat: the parameters of a unit as one buffer. This rank keeps a shard, and the whole while parameters are used.
// A `unit` moves it between the states of `Residence`; `flat_gradient` does the same for gradients.
// Parameters keep their TensorImpl: they become views of the whole once, and only its storage is freed and refilled, so
// that handles held by modules, ties and users stay valid. While it is freed they point to a guard, which throws.
// Mirrored by trainer/plan/engine_memory.cpp: change both.
#pragma once

#include <sealift/train/comm/groups.hpp>
#include <sealift/train/flat/buffer_pool.hpp>
#include <sealift/train/flat/codec.hpp>
#include <sealift/train/flat/fill_shard.hpp>
#include <sealift/train/flat/flat_layout.hpp>
#include <sealift/train/flat/guard.hpp>
#include <sealift/train/flat/meta_device.hpp>
#include <sealift/train/flat/side_streams.hpp>
#include <sealift/train/flat/stored_codec.hpp>

namespace sealift::train {

enum class Residence {
  Sharded,       ///< after construction and `reshard`: the whole has no memory, reading a parameter throws
  Gathering,     ///< after `start_unshard`: the whole has memory, its values are in flight
  Unsharded,     ///< after `finish_unshard`: parameters hold the values of all ranks' shards
  GroupSharded,  ///< after `reshard_to_group`: as Sharded, with a larger part kept, so that fewer ranks gather it again
};

/// Parameters of one dtype that are either all trainable or all frozen.
class FlatParam {
 public:
  struct Options {
    std::string unit = {};                               ///< for messages
    std::string label = {};                              ///< for observers: the unit's, and which of its flats this is
    std::optional<at::ScalarType> compute_dtype = {};    ///< of the whole; unset: the parameters' own
    bool on_host = false;                                ///< the shard lives in host memory
    bool pin_memory = false;                             ///< ... page-locked
    bool broadcast = true;                               ///< without a source: start from rank 0's values
    std::int64_t reshard_group = 0;                      ///< ranks of the group of `reshard_to_group`; 0: none
    GatherCompression gather = {};                       ///< how shards travel
    StoredAs stored = {};                                ///< what is kept of the shard; other than `Plain`: frozen ones
    std::shared_ptr<detail::SteadyBuffers> memory = {};  ///< of the whole and of what travels; null: `BufferPool`
  };

  /// Takes over the parameters: each becomes a part of the whole, on the rank's device, and this rank's shard gets the
  /// first values from `source`; without one from rank 0's parameters, or with `broadcast` off from this rank's own.
  /// Never holds more than the shard, what it was given, and a piece. Collective when it broadcasts.
  FlatParam(std::vector<NamedTensor> parameters, Groups groups, Options options, Source* source = nullptr)
      : parameters_(std::move(parameters)), groups_(std::move(groups)), options_(std::move(options)) {
    at::NoGradGuard no_grad;
    std::vector<std::vector<std::int64_t>> shapes;
    for (const auto& [name, tensor] : parameters_) shapes.push_back(tensor.sizes().vec());
    layout_ = make_flat_layout(shapes, groups_.mesh.shard, alignment_of(options_.stored));
    if (options_.reshard_group > 1) group_ = groups_.subgroup(options_.reshard_group);

    const auto& first = parameters_.front().tensor;
    const auto own = torch::dtype(first.scalar_type()).device(device_for(first, groups_));
    const auto host = own.device(at::kCPU).pinned_memory(options_.pin_memory && own.device().is_cuda());
    if (is_stored()) {
      store(source, own, host);
    } else {
      shard_ = torch::zeros({layout_.shard_numel}, options_.on_host ? host : own);
      first_values(shard_, source, own);
      codec_ = make_codec(options_.gather, first.scalar_type());
    }

    whole_ = detail::flat_without_memory(layout_.padded_numel(),
                                         own.dtype(options_.compute_dtype.value_or(first.scalar_type())));
    if (options_.on_host && !whole_.is_cpu()) streams_ = std::make_unique<SideStreams>(whole_.device());
    guard_ =
        detail::guard_storage(whole_.device(), whole_.nbytes(),
                              "the parameters of unit '" + options_.unit +
                                  "' are sharded and hold values only while their unit runs forward or backward; "
                                  "to read them, keep `const auto whole = parallel.gather_parameters();` alive; to "
                                  "train them, make the optimizer from Parallel::shards()");
    for (std::size_t i = 0; i < size(); ++i) {
      auto& parameter = parameters_[i].tensor;
      detail::replace_data(parameter, view(whole_, i));
      auto leaf = is_stored() ? torch::empty({0}, own)
                              : layout_.fragment_of(shard_, i, groups_.shard.rank(), parameter.sizes()).detach();
      fragments_.push_back({parameters_[i].name, leaf.set_requires_grad(parameter.requires_grad())});
    }
    release();
  }

  FlatParam(const FlatParam&) = delete;
  FlatParam& operator=(const FlatParam&) = delete;

  std::size_t size() const { return parameters_.size(); }
  bool trainable() const { return parameters_.front().tensor.requires_grad(); }
  const FlatLayout& layout() const { return layout_; }
  const std::vector<NamedTensor>& parameters() const { return parameters_; }
  Residence residence() const { return residence_; }
  bool has_memory() const { return residence_ == Residence::Gathering || residence_ == Residence::Unsharded; }

  /// Whether what is kept are not the elements, but what `Options::stored` makes of them.
  bool is_stored() const { return options_.stored != StoredAs::Plain; }

  /// This rank's part of each parameter, as leaves for an optimizer; [rows, ...] where whole rows, else [numel]. Empty
  /// where `is_stored`.
  const std::vector<NamedTensor>& fragments() const { return fragments_; }

  /// Starts to gather the whole from all shards, unless it has memory. Collective over the shard group.
  void start_unshard() {
    if (!has_memory()) gather();
  }

  /// The same, and again if its values were gathered in another epoch: the optimizer may have stepped since.
  void start_unshard(std::int64_t epoch) {
    if (has_memory() && epoch_ == epoch) return;
    if (residence_ == Residence::Gathering) finish_unshard();
    if (residence_ == Residence::GroupSharded && epoch_ != epoch) reshard();
    gather();
    epoch_ = epoch;
  }

  /// Parameters may be used when this returns.
  void finish_unshard() {
    if (residence_ != Residence::Gathering) return;
    {
      const ObservedScope waiting(*groups_.observers, Activity::GatherWait, options_.label);
      ticket_.wait();
      if (streams_) streams_->wait(SideStreams::Current, std::exchange(arrived_, nullptr));
    }
    groups_.observers->end(Activity::Gather, options_.label);
    source_.reset();
    if (const auto messages = std::exchange(messages_, {}); messages.defined()) {
      codec_->decode(whole_, messages, layout_.shards);
    }
    residence_ = Residence::Unsharded;
  }

  void unshard() {
    start_unshard();
    finish_unshard();
  }
  void unshard(std::int64_t epoch) {
    start_unshard(epoch);
    finish_unshard();
  }

  /// Frees the whole, and the part that `reshard_to_group` keeps.
  void reshard() {
    if (residence_ == Residence::Gathering) finish_unshard();
    if (residence_ == Residence::Unsharded) release();
    source_.reset();
    residence_ = Residence::Sharded;
  }

  /// Frees the whole except this rank's part in a smaller group, from which backward gathers it again.
  void reshard_to_group() {
    if (residence_ != Residence::Unsharded) return;
    if (group_.size() == 1) return reshard();  // a replicated unit: nobody to gather from
    const auto numel = layout_.padded_numel() / group_.size();
    const auto mine = whole_.narrow(0, group_.rank() * numel, numel);
    const detail::UseBuffers use(options_.memory);
    source_ = options_.memory ? detail::flat_buffer(numel, mine.options()).copy_(mine) : mine.clone();
    release();
    residence_ = Residence::GroupSharded;
  }

  /// Whether this rank's shard was written to since it was gathered. An optimizer that writes through `.data()`, as
  /// LibTorch's SGD does, or that skips empty tensors is not seen, so ranks may differ: for an error, not for a
  /// decision.
  bool is_outdated() const { return has_memory() && shard_._version() != version_; }

 private:
  /// Fills `shard` [padded / shards], of dtype and device `own` or on the host.
  void first_values(const at::Tensor& shard, Source* source, const at::TensorOptions& own) {
    if (!source && options_.broadcast && groups_.world.size() > 1) {
      detail::receive_shard(shard, parameters_, layout_, groups_, own, options_.unit);
    } else {
      detail::fill_shard(shard, parameters_, layout_, groups_.shard.rank(), source);
    }
  }

  /// Makes the codec and what this rank keeps; from a source a piece at a time, else from the shard, which is whole
  /// for that long.
  void store(Source* source, const at::TensorOptions& own, const at::TensorOptions& host) {
    at::Tensor shard;
    if (!source) first_values(shard = torch::zeros({layout_.shard_numel}, own), nullptr, own);
    const auto read = [&](std::size_t index, std::int64_t begin, at::Tensor out) {
      const auto part = layout_.fragment(index, groups_.shard.rank());
      const auto& [name, tensor] = parameters_[index];
      source ? source->read(name, tensor.sizes(), begin, out)
             : static_cast<void>(out.copy_(shard.narrow(0, part.in_shard + begin - part.in_parameter, out.numel())));
    };
    const auto codec = make_stored_codec(options_.stored);
    shard_ = codec->store(layout_, read, own, groups_, options_.unit);
    if (options_.on_host) shard_ = torch::empty_like(shard_, host.dtype(at::kByte)).copy_(shard_);
    codec_ = codec;
  }

  /// Parameter `index` in a buffer of the whole's size, in the parameter's shape.
  at::Tensor view(const at::Tensor& whole, std::size_t index) const {
    return layout_.view_of(whole, index, parameters_[index].tensor.sizes());
  }

  void gather() {
    at::NoGradGuard no_grad;
    const detail::UseBuffers use(options_.memory);
    version_ = shard_._version();
    groups_.observers->begin(Activity::Gather, options_.label);
    if (!has_memory()) refill();
    if (residence_ == Residence::GroupSharded) {
      ticket_ = group_.all_gather(whole_, source_, options_.unit);
    } else if (streams_) {
      // The whole's memory may be in use until now; from here on nothing that computes waits for the host.
      streams_->wait(SideStreams::In, streams_->mark(SideStreams::Current));
      streams_->run(SideStreams::In, [&] { gather_from(shard_.to(whole_.device(), /*non_blocking=*/true)); });
      arrived_ = streams_->mark(SideStreams::In);
    } else {
      gather_from(shard_);
    }
    residence_ = Residence::Gathering;
  }

  /// `shard`: this rank's, on the whole's device, so that a cast runs there.
  void gather_from(const at::Tensor& shard) {
    if (layout_.shards == 1) {
      is_stored() ? codec_->decode(whole_, shard, 1) : static_cast<void>(whole_.copy_(shard, /*non_blocking=*/true));
      return;
    }
    source_ = codec_->encode(shard, whole_.options());
    if (!codec_->is_whole()) messages_ = detail::flat_buffer(source_.numel() * layout_.shards, source_.options());
    ticket_ = groups_.shard.all_gather(messages_.defined() ? messages_ : whole_, source_, options_.unit);
  }

  /// Frees the whole's memory. Aliases that autograd has saved share its storage and see it again when it is refilled.
  void release() {
    auto* storage = whole_.storage().unsafeGetStorageImpl();
    storage->set_data_ptr_noswap(at::DataPtr(nullptr, storage->device()));
    storage->set_nbytes(0);
    point_parameters_to(guard_);
  }

  void refill() {
    const c10::DeviceGuard on(whole_.device());  // an allocator takes the current one
    auto* storage = whole_.storage().unsafeGetStorageImpl();
    const auto bytes = static_cast<std::size_t>(whole_.numel()) * whole_.element_size();
    storage->set_data_ptr_noswap(options_.memory ? options_.memory->take(bytes, whole_.device())
                                                 : storage->allocator()->allocate(bytes));
    storage->set_nbytes(bytes);
    point_parameters_to(whole_.storage());
  }

  void point_parameters_to(const c10::Storage& storage) {
    for (auto& [name, parameter] : parameters_) parameter.unsafeGetTensorImpl()->set_storage_keep_dtype(storage);
  }

  std::vector<NamedTensor> parameters_;
  std::vector<NamedTensor> fragments_;
  Groups groups_;
  Options options_;
  FlatLayout layout_;
  Collectives group_;  ///< of `reshard_to_group`
  Residence residence_ = Residence::Sharded;
  std::int64_t epoch_ = -1;    ///< in which the whole was gathered
  std::uint32_t version_ = 0;  ///< of the shard then
  detail::BufferPool::User memory_;
  at::Tensor whole_;    ///< [padded] in the compute dtype; has no memory while sharded
  at::Tensor shard_;    ///< [padded / shards], this rank's, in the parameters' dtype; or the codec's message
  at::Tensor source_;   ///< sent by a gather: the shard on the device in the compute dtype, or the group's part
  c10::Storage guard_;  ///< of the parameters while the whole has no memory
  std::shared_ptr<const Codec> codec_;
  at::Tensor messages_;  ///< of all ranks while a gather is in flight, unless they are the whole
  Ticket ticket_;
  std::unique_ptr<SideStreams> streams_;  ///< for a shard that lives on the host, of a whole that does not
  SideStreams::Mark arrived_;             ///< of the shard, in a gather
};

}  // namespace sealift::train
