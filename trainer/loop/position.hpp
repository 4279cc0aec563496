// SPDX-License-Identifier: Apache-2.0
// How far a run is: the steps that are done, and what they computed.
// The loop counts steps and losses; a job adds what else it goes on from. Saved with each checkpoint.
// The curves are part of it, so that an interrupted run ends with the result of an uninterrupted one.
#pragma once

#include "trainer/data/sampler.hpp"

#include <sealift/train/step/scaler.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <optional>

namespace sealift::trainer {

/// A loss that was measured after `step`.
struct Evaluation {
  std::int64_t step = 0;
  double loss = 0;
  nlohmann::json metrics = nlohmann::json::object();  ///< of the objective, by name
  bool kept = true;                                   ///< false: the model of it was to be kept and could not be
};

struct Position {
  std::int64_t step = 0;
  std::int64_t skipped = 0;  ///< steps that the optimizer did not take: what was computed was not finite
  bool stopped = false;      ///< early
  std::vector<double> losses;
  std::vector<Evaluation> evaluations;
  SamplerState sampler;
  train::GradScalerState scaler;

  /// The evaluation of the least loss, the first of equal ones; nothing where no loss is finite, since what computes
  /// NaN or infinity is no model, however NaN compares. One whose model is not there is not the best.
  std::optional<Evaluation> best() const {
    std::optional<Evaluation> least;
    for (const auto& each : evaluations) {
      if (each.kept && std::isfinite(each.loss) && (!least || each.loss < least->loss)) least = each;
    }
    return least;
  }

  /// Evaluations since the best; all of them where none was good.
  std::int64_t without_better() const {
    const auto least = best();
    return std::count_if(evaluations.begin(), evaluations.end(),
                         [&](const auto& each) { return !least || each.step > least->step; });
  }
};

}  // namespace sealift::trainer
