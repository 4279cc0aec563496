// SPDX-License-Identifier: Apache-2.0
// Where reduced gradients end: on the leaves that the optimizer steps, or in host memory until the step.
// `flat_gradient` adds the means of its buffer here and asks for nothing else.
#pragma once

#include <sealift/train/bodies.hpp>
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
  LeafGradients(std::vector<GradientSlot>& slots, const FlatLayout& layout, std::int64_t rank, bool on_host);

  /// Adds this rank's part `mean`, [padded / shards], to the gradients of the leaves of `slots`; what goes from a
  /// device to the host is added by `land`.
  void add(const at::Tensor& mean, std::set<std::size_t> slots);

  /// Waits for means that are on their way to the host, and adds them to the gradients there.
  void land();

  /// Adds the means that wait in host memory to the gradients of the leaves.
  void flush();
  bool waits(std::size_t index) const { return waiting_.contains(index); }

  /// During a backward pass: a replicated parameter is its own leaf, so autograd would add to the mean of an earlier
  /// pass and the sum over the ranks would contain it again. `show` adds it to the new one.
  void hide();
  void show();

  /// Forgets what waits for slot `index`.
  void drop(std::size_t index) { waiting_.erase(index); }
  /// Forgets all that waits, and puts hidden means back as they were.
  void drop();

 private:
  /// Adds this rank's part of the mean of slot `index` to the leaf's gradient, or to the sum that waits on the host.
  void accumulate(std::size_t index, const at::Tensor& mean);

  static void add_to(at::Tensor& sum, const at::Tensor& term);

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

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/flat/leaf_gradients_inl.hpp>
#endif
