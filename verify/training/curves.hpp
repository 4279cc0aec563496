// SPDX-License-Identifier: Apache-2.0
// Do two training jobs agree: their losses and gradient norms, step by step, and where do they part?
// Judging half of this room's checks: JSON of jobs in, a Check out.
// Pure, so that tests feed it jobs that never ran.
#pragma once

#include "verify/conduct/check_kind.hpp"

namespace sealift::verify {

/// Two curves held against each other.
struct CurveDifference {
  double largest = 0;                     ///< relative to the reference's value; infinite where one is not finite
  std::optional<std::size_t> first_step;  ///< counted from 1: the first that is not within the tolerance
  double ours = 0, reference = 0;         ///< of that step
};

/// Throws std::invalid_argument when the curves have not as many values.
CurveDifference compare(const std::vector<double>& ours, const std::vector<double>& reference, double tolerance);

/// A job as a reference: what it is called, and its numbers.
struct Series {
  Phrase name;  ///< "one process", "the golden run"
  std::vector<double> losses, norms;
};

/// The numbers of what `run_job` returned.
Series series_of(const nlohmann::json& ran, Phrase name);

/// The largest relative difference that is allowed for losses computed in `precision`.
double default_tolerance(const std::string& precision);

/// That of gradient norms, where losses may differ by `tolerance`: a hundred times as much up to 1 %, from there ten
/// times. Adam divides each gradient by its own size, so another order of sums grows from step to step, in norms more
/// than in losses: by 30 to 1 where one process was held to itself with two micro-batches (1.7e-3 and 5.5e-5, in step
/// 9).
double norm_tolerance(double tolerance);

/// Holds `ours` against `reference`: outcome, reason, figures and a picture. A tolerance of 0 is: to the bit.
void judge_curves(const Series& ours, const Series& reference, double tolerance, Check& check);

/// True, with the check failed and the ranks named, when a child of some rank failed. A rank whose process was killed
/// is at fault before ranks that only noticed.
bool judge_failures(const std::vector<Measured>& all, Check& check);

/// What rank 0 measured; throws std::invalid_argument where it measured nothing.
const nlohmann::json& of_first(const std::vector<Measured>& all);

}  // namespace sealift::verify
