// SPDX-License-Identifier: Apache-2.0
// The report's own words, each in both languages; what a check says it brings itself, as a Phrase.
// Below every page. A translator reads one table, words.cpp, and nothing else.
// An enumeration and not keys in texts, so that a missing word does not compile.
#pragma once

#include "verify/verdict/check.hpp"

#include <initializer_list>

namespace sealift::verify {

enum class Language { English, Chinese };

/// Reads "en" or "zh"; throws std::invalid_argument.
Language language_of(const std::string& name);

enum class Word {
  Report,
  Comparison,
  Site,
  LevelOf,
  Times,

  Program,
  Bundle,
  Manifest,
  Signers,
  NoBundle,
  NoSigner,
  Pass,
  Fail,
  NotRunYet,
  Quick,
  Full,
  Burn,
  Installation,
  Machine,
  Arithmetic,
  Communication,
  Training,
  Python,
  Egress,
  PassMeans,
  FailMeans,
  NotRunMeans,
  WithOneNotRun,
  WithNotRun,
  WithUnasked,
  Counts,
  Summary,
  PartOf,
  Passed,
  Failed,
  NotRunCount,
  NoCheck,
  WhatFailed,
  NothingFailed,
  AtFault,
  NobodyNamed,
  AndMore,
  AndMoreChecks,
  WhatWasNotRun,
  AllWasRun,
  Because,
  NoReason,
  Machines,
  Hosts,
  Ranks,
  Devices,
  NoMachines,
  Signatures,
  Verified,
  Reviewed,
  Approved,
  Role,
  Name,
  Date,
  Signature,
  SignedElsewhere,
  FigureName,
  Took,
  Measured,
  Expected,
  Basis,
  Within,
  Outside,
  NoExpectation,
  AtLeast,
  AtMost,
  Between,
  FiguresLeftOut,
  Read,
  Value,
  FactsLeftOut,
  CutHere,
  ExpectedCurve,
  LowestOf,
  MedianOf,
  HighestOf,
  NotFinite,
  NotOnLog,
  NoPoint,
  Scale,
  NotMeasured,
  Blocks,
  Extremes,
  Empty,
  Before,
  After,
  Worse,
  Better,
  Changed,
  NothingWorse,
  SomethingWorse,
  Outcomes,
  Figures,
  Facts,
  Environment,
  OnlyBefore,
  OnlyAfter,
  NothingChanged,
  Noise,
  ExpectationChanged,
  Relative,
  NotMatrices,
  Curves,
  Curve,
  FirstDifference,
  LargestDifference,
  PointsOf,
  DifferentLevels,
  CheckName,
  MoreRows,
  kCount
};

/// The word, as it is shown.
std::string word(Word which, Language language);

/// The word with each "{}" replaced, in order.
std::string filled(Word which, Language language, std::initializer_list<std::string> values);

/// What the report calls it.
std::string word(Outcome outcome, Language language);
std::string word(Part part, Language language);
std::string word(Level level, Language language);

/// "✔", "✘", "○": an outcome without colour.
std::string mark(Outcome outcome);

/// `phrase` in `language`; in English where it has no Chinese.
const std::string& in(const Phrase& phrase, Language language);

}  // namespace sealift::verify
