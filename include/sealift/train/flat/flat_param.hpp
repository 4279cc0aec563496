// SPDX-License-Identifier: Apache-2.0
// One flat: the parameters of a unit as one buffer. This rank keeps a shard, and the whole while parameters are used.
// A `unit` moves it between the states of `Residence`; `flat_gradient` does the same for gradients.
// Parameters keep their TensorImpl: they become views of the whole once, and only its storage is freed and refilled, so
// that handles held by modules, ties and users stay valid. While it is freed they point to a guard, which throws.
// Mirrored by trainer/plan/engine_memory.cpp: change both.
#pragma once

#include <sealift/train/bodies.hpp>
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
  FlatParam(std::vector<NamedTensor> parameters, Groups groups, Options options, Source* source = nullptr);

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
  void start_unshard();

  /// The same, and again if its values were gathered in another epoch: the optimizer may have stepped since.
  void start_unshard(std::int64_t epoch);

  /// Parameters may be used when this returns.
  void finish_unshard();

  void unshard();
  void unshard(std::int64_t epoch);

  /// Frees the whole, and the part that `reshard_to_group` keeps.
  void reshard();

  /// Frees the whole except this rank's part in a smaller group, from which backward gathers it again.
  void reshard_to_group();

  /// Whether this rank's shard was written to since it was gathered. An optimizer that writes through `.data()`, as
  /// LibTorch's SGD does, or that skips empty tensors is not seen, so ranks may differ: for an error, not for a
  /// decision.
  bool is_outdated() const { return has_memory() && shard_._version() != version_; }

 private:
  /// Fills `shard` [padded / shards], of dtype and device `own` or on the host.
  void first_values(const at::Tensor& shard, Source* source, const at::TensorOptions& own);

  /// Makes the codec and what this rank keeps; from a source a piece at a time, else from the shard, which is whole
  /// for that long.
  void store(Source* source, const at::TensorOptions& own, const at::TensorOptions& host);

  /// Parameter `index` in a buffer of the whole's size, in the parameter's shape.
  at::Tensor view(const at::Tensor& whole, std::size_t index) const;

  void gather();

  /// `shard`: this rank's, on the whole's device, so that a cast runs there.
  void gather_from(const at::Tensor& shard);

  /// Frees the whole's memory. Aliases that autograd has saved share its storage and see it again when it is refilled.
  void release();

  void refill();

  void point_parameters_to(const c10::Storage& storage);

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

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/flat/flat_param_inl.hpp>
#endif
