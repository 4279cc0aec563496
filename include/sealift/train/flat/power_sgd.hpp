// SPDX-License-Identifier: Apache-2.0
// What PowerSGD remembers from step to step: factors, errors, and where its random numbers are.
// Shared by a model's transports (power_sgd_transport.hpp); a job saves and loads it with its checkpoints.
// It belongs to parameters, by name, and not to buckets as in PyTorch's hook: buckets may be made again at any time,
// and a job goes on from what it saved although its buckets have not settled yet.
#pragma once

#include <sealift/train/compression.hpp>

#include <torch/torch.h>

#include <map>
#include <random>

namespace sealift::train {

/// PowerSGD's memory on one rank, shared by the transports of a model.
class PowerSgd {
 public:
  explicit PowerSgd(const PowerSgdOptions& options) : options_(options), random_(options.random_seed) {
    TORCH_CHECK(options.matrix_approximation_rank >= 1, "PowerSGD: matrix_approximation_rank is ",
                options.matrix_approximation_rank, "; expected at least 1");
    TORCH_CHECK(
        options.start_iteration >= 0 && options.min_compression_rate > 0 && options.orthogonalization_epsilon >= 0,
        "PowerSGD: start_iteration is ", options.start_iteration, ", min_compression_rate ",
        options.min_compression_rate, ", orthogonalization_epsilon ", options.orthogonalization_epsilon,
        "; none may be negative, and the rate must be above 0");
  }

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
  std::uint64_t draw_seed() {
    for (;;) {
      ++draws_;
      if (const auto bits = random_() & 0x3fffffff; bits < 1'000'000'000) return bits;
    }
  }

  /// Everything that a job needs to go on exactly: "iteration", "draws", "q/NAME" and "error/NAME". Views, not copies.
  /// Errors are this rank's own; the rest is the same on all ranks.
  std::map<std::string, at::Tensor> state() const {
    std::map<std::string, at::Tensor> state{{"iteration", at::scalar_tensor(iteration_, at::kLong)},
                                            {"draws", at::scalar_tensor(draws_, at::kLong)}};
    for (const auto& [name, memory] : memories_) {
      if (memory.q.defined()) state["q/" + name] = memory.q;
      if (memory.error.defined()) state["error/" + name] = memory.error;
    }
    return state;
  }

  /// Goes on from `state`. Without "error/" entries, as in a world of another size, errors begin at zero.
  void load(const std::map<std::string, at::Tensor>& state) {
    at::NoGradGuard no_grad;
    for (const auto* key : {"iteration", "draws"}) {
      TORCH_CHECK(state.contains(key), "this is no state of PowerSGD: it has no '", key, "'");
    }
    const auto iteration = state.at("iteration").item<std::int64_t>(), draws = state.at("draws").item<std::int64_t>();
    TORCH_CHECK(iteration >= 0 && draws >= 0 && draws <= std::int64_t{1} << 30, "the state of PowerSGD has iteration ",
                iteration, " and ", draws, " draws; neither may be negative, nor draws above 2^30: it is damaged");
    iteration_ = iteration;
    draws_ = draws;
    random_.seed(options_.random_seed);
    random_.discard(static_cast<unsigned long long>(draws_));
    for (auto& [name, memory] : memories_) {
      if (memory.error.defined()) memory.error.zero_();
    }
    for (const auto& [key, value] : state) {
      if (key.starts_with("q/")) restore(memories_[key.substr(2)].q, value, key);
      if (key.starts_with("error/")) restore(memories_[key.substr(6)].error, value, key);
    }
  }

 private:
  /// In place where a transport uses it already.
  static void restore(at::Tensor& memory, const at::Tensor& value, const std::string& key) {
    if (!memory.defined()) {
      memory = value.clone();
      return;
    }
    TORCH_CHECK(memory.sizes() == value.sizes(), "PowerSGD: '", key, "' has shape ", value.sizes(), ", expected ",
                memory.sizes(), "; load the state with the matrix_approximation_rank and the model that saved it");
    memory.copy_(value);
  }

  PowerSgdOptions options_;
  std::int64_t iteration_ = 0, draws_ = 0;
  std::mt19937 random_;
  std::map<std::string, Memory> memories_;  ///< by parameter
};

}  // namespace sealift::train
