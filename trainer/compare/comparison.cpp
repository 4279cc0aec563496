// SPDX-License-Identifier: Apache-2.0
// See comparison.hpp.
#include "trainer/compare/comparison.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sealift::trainer::compare {
namespace {

constexpr double kOfNarrow = 1e-2;

std::vector<std::string> keys_that_differ(const Texts& a, const Texts& b) {
  std::vector<std::string> keys;
  const auto collect = [&keys](const Texts& from, const Texts& to) {
    for (const auto& [key, value] : from) {
      const auto found = to.find(key);
      if (found == to.end() || found->second != value) keys.push_back(key);
    }
  };
  collect(a, b);
  collect(b, a);
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

double difference_of(const std::vector<double>& losses, const std::vector<double>& reference) {
  double most = 0;
  for (std::size_t i = 0; i < std::min(losses.size(), reference.size()); ++i) {
    const auto apart = losses[i] == reference[i] ? 0 : std::abs(losses[i] - reference[i]) / std::abs(reference[i]);
    most = std::isfinite(apart) ? std::max(most, apart) : std::numeric_limits<double>::infinity();
  }
  return most;
}

Agreement agreement_of(const RunCost& run, const RunCost& first, double tolerance) {
  using Kind = Agreement::Kind;
  if (run.losses.empty()) return {.kind = Kind::Unknown, .other_keys = {}};
  if (run.job && first.job) {
    auto keys = keys_that_differ(*run.job, *first.job);
    if (!keys.empty()) return {.kind = Kind::AnotherJob, .other_keys = std::move(keys)};
  }
  const bool narrow = run.precision != "fp32" || first.precision != "fp32";
  const auto difference = difference_of(run.losses, first.losses);
  const auto bound = narrow ? std::max(tolerance, kOfNarrow) : tolerance;
  return {.kind = difference <= bound ? Kind::Agrees : Kind::Differs, .difference = difference, .other_keys = {}};
}

}  // namespace

bool Comparison::any_differs() const {
  return std::any_of(agreements.begin(), agreements.end(),
                     [](const auto& each) { return each.kind == Agreement::Kind::Differs; });
}

Comparison compare_runs(std::vector<RunCost> runs, double tolerance) {
  Comparison comparison{.runs = std::move(runs), .agreements = {}};
  const RunCost* first = nullptr;
  for (const auto& run : comparison.runs) {
    if (!first && !run.losses.empty()) {
      first = &run;
      comparison.agreements.push_back({.kind = Agreement::Kind::First, .other_keys = {}});
    } else if (first) {
      comparison.agreements.push_back(agreement_of(run, *first, tolerance));
    } else {
      comparison.agreements.emplace_back();
    }
  }
  return comparison;
}

}  // namespace sealift::trainer::compare
