// SPDX-License-Identifier: Apache-2.0
// Several runs side by side: whether they computed the same, and which of them to take.
// Between what each cost (run_cost.hpp) and how it is shown (shown.hpp, page.hpp).
// `check` judges equality; this shows costs, and says where runs cannot be held against each other.
#pragma once

#include "trainer/compare/run_cost.hpp"
#include "trainer/plan/advice.hpp"

namespace sealift::trainer::compare {

/// Losses of a run against those of the first that has any.
struct Agreement {
  enum class Kind {
    First,   ///< what others are held to
    Agrees,  ///< every loss, or of Python's runs the first
    Differs,
    AnotherJob,  ///< settings that change the numbers are others
    Unknown,     ///< no losses
  } kind = Kind::Unknown;
  double difference = 0;                ///< the largest, relative
  std::vector<std::string> other_keys;  ///< of AnotherJob: settings that differ
};

struct Comparison {
  std::vector<RunCost> runs;
  std::vector<Agreement> agreements;  ///< of each run

  bool any_differs() const;
};

/// `tolerance`: the largest relative difference of a loss in fp32; runs of a narrower precision may differ by 1e-2
/// where that is more, since they round in other places.
Comparison compare_runs(std::vector<RunCost> runs, double tolerance);

/// One sentence of advice or two with the numbers that lead to it; before it what forbids advice.
std::string advice_of(const Comparison& comparison, plan::Language language);

}  // namespace sealift::trainer::compare
