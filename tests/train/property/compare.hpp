// SPDX-License-Identifier: Apache-2.0
// Runs a configuration on its ranks and on one process, and says how the two differ.
// After `training`; the test and `shrink` ask it.
// Ranks are threads, so their pieces are put together here, without a collective that could hide an error.
#pragma once

#include "tests/train/property/training.hpp"

#include <cmath>
#include <limits>
#include <map>

namespace sealift::test::property {

struct Verdict {
  std::string failure = {};  ///< empty: as on one process
  bool refused = false;      ///< by the policy, on every rank, as it must be
  double distance = 0;       ///< the largest one of a gradient or parameter that was seen
};

/// How far rounding may go, relative to a tensor, or to the largest of all where `of_all` of that is more: a gradient
/// that is nearly zero is a difference of large ones.
struct Tolerance {
  double distance, of_all;
  bool operator<(const Tolerance& other) const { return distance < other.distance; }
};

/// The narrowest dtype that values or gradients pass through.
inline at::ScalarType narrowest_of(const Configuration& c) {
  const auto& precision = c.text(kPrecision);
  if (precision.starts_with("bf16") || c.is(kOverride, "bf16") || c.chosen(kAutocast)) return at::kBFloat16;
  return precision == "fp16_reduce" ? at::kHalf : at::kFloat;
}

/// What rounding explains: fp32 sums in another order, fp16 on the wire, bf16 everywhere.
inline Tolerance tolerance_of(const Configuration& c) {
  const auto narrowest = narrowest_of(c);
  if (narrowest == at::kBFloat16) return {0.15, 0.5};
  return narrowest == at::kHalf ? Tolerance{1e-2, 0.1} : Tolerance{2e-4, 0.05};
}

/// Whole parameters (or gradients) by name, from all ranks' pieces; an undefined tensor where no rank has a gradient.
/// Sets `failure` when ranks that hold the same elements differ, or elements are missing.
inline std::map<std::string, at::Tensor> put_together(const std::vector<const std::vector<Piece>*>& ranks,
                                                      std::string& failure) {
  std::map<std::string, at::Tensor> whole, held;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    for (const auto& piece : *ranks[rank]) {
      const bool is_new = !whole.contains(piece.name);
      if (is_new) {
        whole[piece.name] = piece.values.defined() ? torch::zeros({piece.whole}, torch::kDouble) : at::Tensor();
        held[piece.name] = torch::zeros({piece.whole}, torch::kBool);
      }
      auto& all = whole[piece.name];
      const auto text = "'" + piece.name + "'";
      if (all.defined() != piece.values.defined()) {
        failure = "rank " + std::to_string(rank) +
                  (all.defined() ? " has no gradient of " : " alone has a gradient of ") + text;
        return whole;
      }
      if (!all.defined()) continue;
      const auto numel = piece.values.numel();
      auto place = all.narrow(0, piece.offset, numel), known = held[piece.name].narrow(0, piece.offset, numel);
      if (known.any().item<bool>() && !place.masked_select(known).equal(piece.values.masked_select(known))) {
        failure = "rank " + std::to_string(rank) + " holds other bits of " + text + " than a rank before it";
        return whole;
      }
      place.copy_(piece.values);
      known.fill_(true);
    }
  }
  for (const auto& [name, known] : held) {
    if (whole[name].defined() && !known.all().item<bool>()) failure = "no rank holds some elements of '" + name + "'";
  }
  return whole;
}

/// The largest element of all, so that a tensor that is nearly zero is held to the others' size.
inline double largest_of(const std::vector<Piece>& pieces) {
  double largest = 1e-6;
  for (const auto& piece : pieces) {
    if (piece.values.defined()) largest = std::max(largest, piece.values.abs().max().item<double>());
  }
  return largest;
}

/// By name, how far one process in the narrower dtype is from one in double, in the step where it is farthest: what
/// rounding leaves does not become less as the gradients do, and one step alone may be right by chance.
using RoundedOff = std::map<std::string, double>;

inline void note_rounding(const std::vector<Piece>& rounded, const std::vector<Piece>& exact, RoundedOff& off) {
  for (std::size_t i = 0; i < exact.size() && i < rounded.size(); ++i) {
    if (!exact[i].values.defined() || !rounded[i].values.defined()) continue;
    auto& most = off[exact[i].name];
    most = std::max(most, (rounded[i].values - exact[i].values).abs().max().item<double>());
  }
}

/// Compares what the ranks hold together with the reference; `what` begins the message. Where one process in the
/// narrower dtype is off itself, as a sum is whose terms cancel, twice that is allowed.
inline void compare_pieces(const std::vector<const std::vector<Piece>*>& ranks, const std::vector<Piece>& expected,
                           const RoundedOff& off, Tolerance tolerance, double largest, const std::string& what,
                           Verdict& verdict) {
  if (!verdict.failure.empty()) return;
  std::string failure;
  const auto got = put_together(ranks, failure);
  if (!failure.empty()) return void(verdict.failure = what + ": " + failure);
  std::size_t wrong = 0;
  for (const auto& piece : expected) {
    const auto found = got.find(piece.name);
    std::string fault;
    if (found == got.end()) {
      fault = "is held by no rank";
    } else if (found->second.defined() != piece.values.defined()) {
      fault = piece.values.defined() ? "is missing" : "should not be there";
    } else if (piece.values.defined()) {
      const double norm = std::max(piece.values.abs().max().item<double>(), tolerance.of_all * largest);
      const double distance = (found->second - piece.values).abs().max().item<double>() / norm;
      double allowed = tolerance.distance;
      if (const auto rounded = off.find(piece.name); rounded != off.end())
        allowed = std::max(allowed, 2 * rounded->second / norm);
      verdict.distance =
          std::max(verdict.distance, std::isnan(distance) ? std::numeric_limits<double>::infinity() : distance);
      if (!(distance <= allowed)) {
        fault = "is off by " + std::to_string(distance) + " of its size, " +
                std::to_string(found->second.abs().max().item<double>()) + " where one process has " +
                std::to_string(piece.values.abs().max().item<double>());
      }
    }
    if (!fault.empty() && wrong++ == 0) verdict.failure = what + " '" + piece.name + "' " + fault;
  }
  if (wrong > 1) verdict.failure += "; so do " + std::to_string(wrong - 1) + " more";
}

inline void compare_numbers(const std::vector<double>& got, const std::vector<double>& expected, double tolerance,
                            const std::string& what, Verdict& verdict) {
  if (!verdict.failure.empty()) return;
  if (got.size() != expected.size()) {
    verdict.failure =
        what + ": " + std::to_string(got.size()) + " where one process has " + std::to_string(expected.size());
  }
  for (std::size_t i = 0; i < expected.size() && verdict.failure.empty(); ++i) {
    if (std::abs(got[i] - expected[i]) <= tolerance * std::max(std::abs(expected[i]), 0.1)) continue;
    verdict.failure = what + " " + std::to_string(i) + " is " + std::to_string(got[i]) + " where one process has " +
                      std::to_string(expected[i]);
  }
}

/// What the ranks came to against one process; `rounded` is its run in a narrower dtype, or null.
inline Verdict compare(const Configuration& c, const std::vector<Outcome>& outcomes, const Outcome& expected,
                       const Outcome* rounded) {
  Verdict verdict;
  const auto size = outcomes.size();
  const auto tolerance = tolerance_of(c);
  for (std::size_t rank = 0; rank < size && verdict.failure.empty(); ++rank) {
    if (!outcomes[rank].still_gathered.empty()) {
      verdict.failure =
          "rank " + std::to_string(rank) + " still holds after the last backward:" + outcomes[rank].still_gathered;
    }
  }
  if (verdict.failure.empty()) {
    std::vector<double> losses(expected.losses.size(),
                               std::numeric_limits<double>::infinity());  // the reference notes all ranks' in turn
    for (std::size_t i = 0; i < losses.size(); ++i) {
      if (i / size < outcomes[i % size].losses.size()) losses[i] = outcomes[i % size].losses[i / size];
    }
    compare_numbers(losses, expected.losses, tolerance.distance, "loss", verdict);
  }
  for (const auto& outcome : outcomes) {
    compare_numbers(outcome.evaluations, outcome.evaluations.empty() ? outcome.evaluations : expected.evaluations,
                    tolerance.distance, "evaluation", verdict);
    compare_numbers(outcome.norms, expected.norms, tolerance.distance, "norm", verdict);
  }
  const auto each = [&](const auto& member) {
    std::vector<const std::vector<Piece>*> all;
    for (const auto& outcome : outcomes) all.push_back(&member(outcome));
    return all;
  };
  double largest = 0;  // of all steps, for the same reason
  RoundedOff gradients, parameters, gathered;
  for (std::size_t step = 0; step < expected.gradients.size(); ++step) {
    largest = std::max(largest, largest_of(expected.gradients[step]));
    if (rounded) note_rounding(rounded->gradients[step], expected.gradients[step], gradients);
  }
  if (rounded) note_rounding(rounded->parameters, expected.parameters, parameters);
  if (rounded) note_rounding(rounded->gathered, expected.gathered, gathered);
  for (std::size_t step = 0; step < expected.gradients.size(); ++step) {
    compare_pieces(each([&](const Outcome& o) -> auto& { return o.gradients[step]; }), expected.gradients[step],
                   gradients, tolerance, largest, "step " + std::to_string(step) + ": gradient of", verdict);
  }
  for (const auto& outcome : outcomes) {
    if (verdict.failure.empty() && !outcome.observed.empty())
      verdict.failure = "observers were told:" + outcome.observed;
  }
  compare_pieces(each([](const Outcome& o) -> auto& { return o.parameters; }), expected.parameters, parameters,
                 tolerance, largest_of(expected.parameters), "parameter", verdict);
  compare_pieces(each([](const Outcome& o) -> auto& { return o.gathered; }), expected.gathered, gathered, tolerance,
                 largest_of(expected.gathered), "gathered parameter", verdict);
  return verdict;
}

/// What one rank holds, put into what one process has: for ranks that are processes, each of which compares its share.
inline std::vector<Piece> with_share(std::vector<Piece> expected, const std::vector<Piece>& share) {
  for (auto& piece : expected) {
    for (const auto& mine : share) {
      if (mine.name != piece.name) continue;
      if (!mine.values.defined() || !piece.values.defined()) {
        piece.values = mine.values;
        continue;
      }
      piece.values = piece.values.clone();
      piece.values.narrow(0, mine.offset, mine.values.numel()).copy_(mine.values);
    }
  }
  return expected;
}

/// The verdict on the share of `rank`, one of `size`.
inline Verdict judge_share(const Configuration& c, const Outcome& mine, std::int64_t rank, std::int64_t size) {
  const auto expected = train_reference(c);
  auto whole = mine;
  whole.losses = expected.losses;  // the reference notes all ranks' in turn
  for (std::size_t i = 0; i < mine.losses.size(); ++i)
    whole.losses.at(i * static_cast<std::size_t>(size) + static_cast<std::size_t>(rank)) = mine.losses[i];
  for (std::size_t step = 0; step < expected.gradients.size(); ++step)
    whole.gradients.at(step) = with_share(expected.gradients[step], mine.gradients.at(step));
  whole.parameters = with_share(expected.parameters, mine.parameters);
  whole.gathered = with_share(expected.gathered, mine.gathered);
  auto verdict = compare(c, {whole}, expected, nullptr);
  if (verdict.failure.empty() || narrowest_of(c) == at::kFloat) return verdict;
  const auto rounded = train_reference(c, narrowest_of(c));
  return compare(c, {whole}, expected, &rounded);
}

/// Whether `c` trains as one process does, on every rank the same bits, and leaves nothing gathered.
inline Verdict judge(const Configuration& c, const Hardware& hardware = {}) {
  const auto size = static_cast<std::size_t>(c.number(kRanks));
  std::vector<Outcome> outcomes(size);
  std::vector<std::string> errors(size);
  std::unique_ptr<bool[]> accepted(new bool[size]());
  on_ranks(
      c.number(kRanks),
      [&](const World& world) {
        const auto rank = static_cast<std::size_t>(world.rank);
        try {
          outcomes[rank] = train_rank(c, world, hardware, accepted[rank]);
        } catch (const std::exception& error) {
          errors[rank] = error.what();
          if (errors[rank].empty()) errors[rank] = "an error without a text";
        }
      },
      std::chrono::seconds(8));

  std::size_t failed = 0, refused = 0;
  std::string first;
  for (std::size_t rank = 0; rank < size; ++rank) {
    if (errors[rank].empty()) continue;
    ++failed;
    refused += !accepted[rank];
    // The rank at fault says more than the ranks that it took with it.
    if (first.empty() || errors[rank].find("ended because of an error") == std::string::npos) {
      first = "rank " + std::to_string(rank) + ": " + errors[rank].substr(0, errors[rank].find("\nException raised"));
    }
  }
  if (refused == size) {
    if (c.to_be_refused()) return {.refused = true};
    return {.failure = "refused: " + first};
  }
  if (failed > 0) {
    if (c.may_be_refused() && failed == size && refused == 0) return {.refused = true};
    return {.failure = std::to_string(failed) + " ranks failed; " + first};
  }
  if (c.to_be_refused()) return {.failure = "the policy should have been refused"};

  const auto expected = train_reference(c);
  auto verdict = compare(c, outcomes, expected, nullptr);
  if (verdict.failure.empty() || narrowest_of(c) == at::kFloat) return verdict;
  const auto rounded = train_reference(c, narrowest_of(c));
  return compare(c, outcomes, expected, &rounded);
}

}  // namespace sealift::test::property
