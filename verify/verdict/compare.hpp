// SPDX-License-Identifier: Apache-2.0
// What changed between two verdicts: before and after a driver update, or one site and another.
// Middle of `diff`: two Verdicts in, one Comparison out, which pages and exit code are made of.
// Worse is said only where it is known: an outcome, a check that is gone, a figure that moved away from its
// expectation.
#pragma once

#include "verify/verdict/verdict.hpp"

namespace sealift::verify {

enum class Turn { Worse, Better, Changed };

/// A check whose outcome changed; nothing: the check is not in that report.
struct OutcomeChange {
  std::string check;
  Phrase title, reason;  ///< the later report's, or the only one's
  std::optional<Outcome> before, after;
  Turn turn = Turn::Changed;
};

/// A figure that moved by more than the threshold, whose expectation changed, or that only one report has.
struct FigureChange {
  std::string check;
  std::optional<Figure> before, after;
  double relative = 0;  ///< (after - before) / max(|before|, |after|); nan if one is not finite or is missing
  bool moved = false, expectation_changed = false;
  Turn turn = Turn::Changed;
  bool in_one_only() const { return !before || !after; }
  const Phrase& name() const { return (after ? after : before)->name; }
};

/// A measured curve whose points are not the same in both reports; without points: that report has no such curve.
struct CurveChange {
  std::string check;
  Phrase graph, curve;
  Phrase axis;                          ///< what x is: "step", "bytes"
  std::optional<double> first;          ///< the first x whose values differ, or that only one of them has
  std::optional<double> before, after;  ///< the values there
  double largest = 0;                   ///< |after - before| / max(|before|, |after|) of the x in both; may be inf
  std::size_t before_points = 0, after_points = 0;
};

/// A text that changed; nothing: it was not there.
struct FactChange {
  std::string check;  ///< "" for what the report says of itself: site, program, bundle, machines
  Phrase name;
  std::optional<Phrase> before, after;
};

struct Comparison {
  std::vector<OutcomeChange> outcomes;
  std::vector<FigureChange> figures;
  std::vector<CurveChange> curves;
  std::vector<FactChange> facts;
  bool different_levels = false;
  double threshold = 0;
  std::size_t worse() const;  ///< outcomes and figures that became worse
};

/// Compares `before` with `after`; names and texts by their English, which reports of all versions have. A figure has
/// moved when |after - before| > threshold × max(|before|, |after|); it became worse when it left what is expected of
/// it, or went down and has only at_least, or up and has only at_most, or is no number any more. One that only one
/// report has, or has in another unit, is listed and not called worse: the outcome of its check says that. A curve over
/// steps is listed when any of its points differs, since what is computed should be the same; others, which are
/// measured, when one has moved. Throws std::invalid_argument when a report names a check twice, the two have no check
/// in common, or threshold is no number from 0 to 1.
Comparison compare(const Verdict& before, const Verdict& after, double threshold);

}  // namespace sealift::verify
