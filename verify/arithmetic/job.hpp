// SPDX-License-Identifier: Apache-2.0
// The training steps that every device computes alone, and the ordered list of what is digested in them.
// `steps` computes the digests in this order; `judge` finds the first that differs and says what it was.
// The order is that of the computation, so the first difference is where it began. No LibTorch in it.
#pragma once

#include "verify/verdict/check.hpp"

#include <nlohmann/json.hpp>

namespace sealift::verify {

/// A small decoder and how long it is trained.
struct ArithmeticJob {
  std::int64_t layers = 2, width = 64, heads = 4, mlp_width = 160, vocabulary = 97;
  std::int64_t batch = 2, time = 32, steps = 3;
  std::uint64_t seed = 1;
  std::vector<std::string> dtypes = {"fp32", "bf16"};
  bool operator==(const ArithmeticJob&) const = default;
};

/// Both ways; reading throws std::invalid_argument on what is missing, of another type or not positive.
nlohmann::json to_json(const ArithmeticJob& job);
ArithmeticJob arithmetic_job_from(const nlohmann::json& json);

/// What of a unit is digested, in the order of a step.
enum class Phase {
  Weights,   ///< before the step, as they lie in memory
  Forward,   ///< the unit's output
  Backward,  ///< the gradient of the unit's output
  Gradient,  ///< the gradients of the unit's weights
  Update,    ///< the weights after the optimizer
};

/// Of what one digest is.
struct Place {
  std::string dtype;
  std::int64_t step = 0;
  Phase phase = Phase::Weights;
  std::string unit;
  bool operator==(const Place&) const = default;
};

/// The units of the decoder in the order of forward; all have weights but the last, "loss".
std::vector<std::string> units_of(const ArithmeticJob& job);

/// Everything that is digested, in the order of the computation.
std::vector<Place> places_of(const ArithmeticJob& job);

/// Products of matrices with weights that one run of the job makes: of each the forward, and backward two. Those within
/// attention are not counted.
std::int64_t products_of(const ArithmeticJob& job);

/// "bf16, step 2, backward: the gradient of the output of layers.1.mlp"
Phrase text_of(const Place& place);

}  // namespace sealift::verify
