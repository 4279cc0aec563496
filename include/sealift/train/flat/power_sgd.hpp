// SPDX-License-Identifier: Apache-2.0
// What PowerSGD remembers from step to step: factors, errors, and where its random numbers are.
// Shared by a model's transports (power_sgd_transport.hpp); a job saves and loads it with its checkpoints.
// It belongs to parameters, by name, and not to buckets as in PyTorch's hook: buckets may be made again at any time,
// and a job goes on from what it saved although its buckets have not settled yet.
#pragma once

#include <sealift/train/bodies.hpp>
#include <sealift/train/compression.hpp>

#include <torch/torch.h>

#include <map>
#include <random>

namespace sealift::train {

/// PowerSGD's memory on one rank, shared by the transports of a model.
class PowerSgd {
 public:
  explicit PowerSgd(const PowerSgdOptions& options);

  const PowerSgdOptions& options() const { return options_; }

  /// Reduced backward passes so far.
  std::int64_t iteration() const { return iteration_; }
  void count_iteration() { ++iteration_; }
  bool compresses() const { return iteration_ >= options_.start_iteration; }

  /// What a matrix [n, m] remembers; views of the memory of the transport that sums it now.
  struct Memory {
    at::Tensor q;      ///< [m, r], the factor to begin with: the same on all ranks
    at::Tensor error;  ///< [n, m], what this rank did not send, in gradients divided by the number of ranks
  };
  std::map<std::string, Memory>& memories() { return memories_; }

  /// The next seed: numpy's RandomState(random_seed).randint(1'000'000'000), which PyTorch's hook takes.
  std::uint64_t draw_seed();

  /// Everything that a job needs to go on exactly: "iteration", "draws", "q/NAME" and "error/NAME". Views, not copies.
  /// Errors are this rank's own; the rest is the same on all ranks.
  std::map<std::string, at::Tensor> state() const;

  /// Goes on from `state`. Without "error/" entries, as in a world of another size, errors begin at zero.
  void load(const std::map<std::string, at::Tensor>& state);

 private:
  /// In place where a transport uses it already.
  static void restore(at::Tensor& memory, const at::Tensor& value, const std::string& key);

  PowerSgdOptions options_;
  std::int64_t iteration_ = 0, draws_ = 0;
  std::mt19937 random_;
  std::map<std::string, Memory> memories_;  ///< by parameter
};

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/flat/power_sgd_inl.hpp>
#endif
