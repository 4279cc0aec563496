// SPDX-License-Identifier: Apache-2.0
// The bodies of power_sgd.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/flat/power_sgd.hpp>

namespace sealift::train {

SEALIFT_BODY PowerSgd::PowerSgd(const PowerSgdOptions& options) : options_(options), random_(options.random_seed) {
  TORCH_CHECK(options.matrix_approximation_rank >= 1, "PowerSGD: matrix_approximation_rank is ",
              options.matrix_approximation_rank, "; expected at least 1");
  TORCH_CHECK(
      options.start_iteration >= 0 && options.min_compression_rate > 0 && options.orthogonalization_epsilon >= 0,
      "PowerSGD: start_iteration is ", options.start_iteration, ", min_compression_rate ", options.min_compression_rate,
      ", orthogonalization_epsilon ", options.orthogonalization_epsilon,
      "; none may be negative, and the rate must be above 0");
}

SEALIFT_BODY std::uint64_t PowerSgd::draw_seed() {
  for (;;) {
    ++draws_;
    if (const auto bits = random_() & 0x3fffffff; bits < 1'000'000'000) return bits;
  }
}

SEALIFT_BODY std::map<std::string, at::Tensor> PowerSgd::state() const {
  std::map<std::string, at::Tensor> state{{"iteration", at::scalar_tensor(iteration_, at::kLong)},
                                          {"draws", at::scalar_tensor(draws_, at::kLong)}};
  for (const auto& [name, memory] : memories_) {
    if (memory.q.defined()) state["q/" + name] = memory.q;
    if (memory.error.defined()) state["error/" + name] = memory.error;
  }
  return state;
}

SEALIFT_BODY void PowerSgd::load(const std::map<std::string, at::Tensor>& state) {
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

SEALIFT_BODY void PowerSgd::restore(at::Tensor& memory, const at::Tensor& value, const std::string& key) {
  if (!memory.defined()) {
    memory = value.clone();
    return;
  }
  TORCH_CHECK(memory.sizes() == value.sizes(), "PowerSGD: '", key, "' has shape ", value.sizes(), ", expected ",
              memory.sizes(), "; load the state with the matrix_approximation_rank and the model that saved it");
  memory.copy_(value);
}

}  // namespace sealift::train
