// SPDX-License-Identifier: Apache-2.0
// The gradient norm of the whole model from the shards of all ranks, clipping by it, and the search for a gradient that
// is not finite.
// Called between backward and the optimizer's step, on the shards of a `Parallel`.
// A sharded element is on one rank of a shard group, a replicated one on all of them, and copies of a group are equal:
// so the norms of one shard group are combined, and replicated parameters are added to the result once. Nothing waits
// for a device: the norm stays a tensor on it, as torch.nn.utils.clip_grad_norm_ returns one.
#pragma once

#include <sealift/train/bodies.hpp>
#include <sealift/train/parallel.hpp>

#include <optional>

namespace sealift::train {

namespace detail {

/// The device for numbers that ranks exchange about their shards: an accelerator if any shard is on one.
at::Device exchange_device(const Parallel& parallel);

/// Tensors of one device and dtype, as ATen's foreach functions take them; the key's order is the same on all ranks.
class Batches {
 public:
  using Key = std::pair<std::string, at::ScalarType>;

  void add(const at::Tensor& tensor) { batches_[{tensor.device().str(), tensor.scalar_type()}].push_back(tensor); }
  auto begin() const { return batches_.begin(); }
  auto end() const { return batches_.end(); }

 private:
  std::map<Key, std::vector<at::Tensor>> batches_;
};

}  // namespace detail

/// The `norm_type`-norm (any p > 0, also infinity) of all gradients as one vector: a scalar in double on their device,
/// the same bits on every rank. Shards without a gradient count as zero. Collective over `Parallel::holders`.
at::Tensor get_total_norm(Parallel& parallel, double norm_type = 2);

/// The same as a number, for a log; waits for the device.
double gradient_norm(Parallel& parallel, double norm_type = 2);

/// Multiplies all gradients by max_norm / (norm + 1e-6) where that is below 1, as torch.nn.utils.clip_grad_norm_ does;
/// returns the norm before clipping, as `get_total_norm`. If the norm is not finite it throws on all ranks with
/// `error_if_nonfinite`, which waits for the device, and otherwise leaves gradients that are not finite either.
/// Collective over the shard group.
at::Tensor clip_grad_norm_(Parallel& parallel, double max_norm, double norm_type = 2, bool error_if_nonfinite = false);

/// What `find_nonfinite` found; the same on all ranks.
struct NonFinite {
  std::int64_t step = 0;  ///< as the caller gave it
  std::int64_t rank = 0;  ///< the lowest whose loss is not finite; without one, the lowest with such elements
  bool loss = false;      ///< that rank's loss is not finite: its input or its forward is the cause
  std::optional<std::string> parameter;  ///< the first with NaN or infinity in its gradient, in order of `parameters()`
  std::string unit;                      ///< path of the unit that holds it; empty: the root

  /// One line for a log.
  std::string message() const;
};

/// Looks for NaN and infinity in the gradients and, if given, in this rank's `loss`; nothing when all are finite. A
/// reduced gradient does not tell whose batch is the cause, but the loss does. Reads every gradient and waits for the
/// device, so call it after a norm that is not finite, not in every step. Collective over the world.
std::optional<NonFinite> find_nonfinite(Parallel& parallel, std::int64_t step, const at::Tensor& loss = {});

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/step/clip_inl.hpp>
#endif
