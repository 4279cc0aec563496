// SPDX-License-Identifier: Apache-2.0
// Learning from pairs of answers, one preferred: DPO and its relatives as one formula with switches.
// Log-probability sums of each pair under the policy (and under a frozen reference) in, an Objective over pairs out.
// One formula, since the papers differ in what a reward is and how a difference of rewards becomes a loss; each named
// method is a row of switches, held to TRL by tests/train/objectives/objectives_peer_test.py. docs/objectives.md.
#pragma once

#include "trainer/objectives/objective.hpp"

#include <cmath>
#include <limits>

namespace sealift::trainer {

/// How the difference d of a pair's rewards becomes its loss; b is beta, e the label smoothing.
enum class PairLoss {
  Sigmoid,  ///< -(1-e) log σ(b d) - e log σ(-b d): DPO (arXiv:2305.18290 eq. 7); e > 0: conservative DPO
  Robust,   ///< (-(1-e) log σ(b d) + e log σ(-b d)) / (1-2e): arXiv:2403.00409
  Hinge,    ///< max(0, 1 - b d): SLiC, arXiv:2305.10425
  Square    ///< (d - 1/(2b))²: IPO, arXiv:2310.12036 eq. 17
};

/// A pair's rewards: r(y) = log p(y), minus the reference's, by y's length, and log odds instead, as switched; their
/// difference is d = r(chosen) - r(rejected) - margin / beta. The loss is
///   weight * loss(d) + nll_weight * (-log p(chosen) by its tokens).
struct PreferenceOptions {
  PairLoss loss = PairLoss::Sigmoid;
  double beta = 0.1;
  double label_smoothing = 0;
  double margin = 0;       ///< SimPO's gamma
  double weight = 1;       ///< ORPO's lambda, which TRL calls beta
  double nll_weight = 0;   ///< RPO's alpha (arXiv:2404.19733), CPO's, ORPO's 1
  bool reference = true;   ///< whether log p of a reference is subtracted
  bool by_length = false;  ///< mean instead of sum over an answer's tokens
  bool odds = false;       ///< r(y) = log(p / (1 - p)), of the mean log-probability: ORPO
};

/// The switches of "dpo", "ipo", "hinge", "robust", "simpo", "cpo", "orpo" with TRL's defaults; "robust" needs a
/// label_smoothing then. Another name: std::invalid_argument.
inline PreferenceOptions preference_options(const std::string& method) {
  if (method == "dpo") return {};
  if (method == "ipo") return {.loss = PairLoss::Square, .by_length = true};
  if (method == "hinge") return {.loss = PairLoss::Hinge};
  if (method == "robust") return {.loss = PairLoss::Robust};
  if (method == "simpo") return {.beta = 2, .margin = 1, .reference = false, .by_length = true};
  if (method == "cpo") return {.nll_weight = 1, .reference = false};
  if (method == "orpo")
    return {.beta = 1, .weight = 0.1, .nll_weight = 1, .reference = false, .by_length = true, .odds = true};
  throw std::invalid_argument("the preference method '" + method +
                              "' is unknown; known are dpo, ipo, hinge, robust, simpo, cpo, orpo");
}

/// Log-probabilities of `pairs` pairs, each [pairs] fp32: sums over the answer's tokens, and how many there are.
struct PairLogProbs {
  at::Tensor chosen, rejected;
  at::Tensor chosen_length, rejected_length;
  at::Tensor reference_chosen, reference_rejected;  ///< undefined without a reference
  at::Tensor nll_sum, nll_tokens;  ///< 0-dimensional: Σ -log p and tokens of the NLL term over all pairs; undefined:
                                   ///< the chosen answers'. TRL's ORPO counts the prompt too
};

/// Sums of each sequence [2 * pairs], chosen before rejected, as `sequence_sums` gives them of a batch of pairs.
inline PairLogProbs pair_log_probs(const at::Tensor& sums, const at::Tensor& lengths,
                                   const at::Tensor& reference_sums = {}) {
  TORCH_CHECK(sums.dim() == 1 && sums.size(0) % 2 == 0 && lengths.sizes() == sums.sizes(),
              "a batch of pairs has sums and lengths of 2 * pairs sequences; got ", sums.sizes(), " and ",
              lengths.sizes());
  const auto side = [](const at::Tensor& all, std::int64_t which) {
    return all.defined() ? all.view({-1, 2}).select(1, which) : at::Tensor();
  };
  return {.chosen = side(sums, 0),
          .rejected = side(sums, 1),
          .chosen_length = side(lengths, 0),
          .rejected_length = side(lengths, 1),
          .reference_chosen = side(reference_sums, 0),
          .reference_rejected = side(reference_sums, 1)};
}

namespace detail {

/// log(1 - exp(x)) for x < 0, exact on both ends (Mächler 2012). Where p rounds to 1, p is taken as the next smaller.
inline at::Tensor log1mexp(const at::Tensor& x) {
  const double half = -std::log(2.0), largest = -std::numeric_limits<float>::epsilon() / 2;
  const auto below = x.clamp_max(largest);
  // Each branch gets only what it is good for: a gradient through the other would be NaN, and NaN times zero is NaN.
  const auto small = below < half;
  const auto far = torch::log1p(-torch::exp(torch::where(small, below, torch::full_like(below, 2 * half))));
  const auto near = torch::log(-torch::expm1(torch::where(small, torch::full_like(below, half / 2), below)));
  return torch::where(small, far, near);
}

/// log p, minus the reference's: what the reward metrics and the formula begin with.
inline at::Tensor log_ratio(const at::Tensor& policy, const at::Tensor& reference, const PreferenceOptions& options) {
  if (!options.reference) return policy.to(torch::kFloat32);
  TORCH_CHECK(reference.defined() && reference.sizes() == policy.sizes(),
              "this preference method subtracts a reference's log-probabilities, of the shape ", policy.sizes(),
              "; got ", reference.defined() ? "another shape" : "none");
  return (policy - reference.detach()).to(torch::kFloat32);
}

inline at::Tensor by_length(const at::Tensor& ratio, const at::Tensor& length, const PreferenceOptions& options) {
  return options.by_length ? ratio / length.clamp_min(1) : ratio;
}

/// [pairs]: the loss of each pair's difference of rewards.
inline at::Tensor pair_losses(const at::Tensor& difference, const PreferenceOptions& options) {
  const auto e = options.label_smoothing;
  const auto right = torch::log_sigmoid(options.beta * difference),
             wrong = torch::log_sigmoid(-options.beta * difference);
  switch (options.loss) {
    case PairLoss::Sigmoid:
      return -(1 - e) * right - e * wrong;
    case PairLoss::Robust:
      return (-(1 - e) * right + e * wrong) / (1 - 2 * e);
    case PairLoss::Hinge:
      return torch::relu(1 - options.beta * difference);
    case PairLoss::Square:
      return (difference - 1 / (2 * options.beta)).square();
  }
  TORCH_CHECK(false, "no such loss of a pair");
}

inline void check(const PreferenceOptions& options) {
  const auto is = [](bool holds, const char* what, double got) {
    if (!holds) throw std::invalid_argument(std::string(what) + "; got " + std::to_string(got));
  };
  is(options.beta > 0 && std::isfinite(options.beta), "a preference's beta must be above 0", options.beta);
  is(options.label_smoothing >= 0 && options.label_smoothing < 0.5, "label_smoothing must be in [0, 0.5)",
     options.label_smoothing);
  is(options.label_smoothing == 0 || options.loss == PairLoss::Sigmoid || options.loss == PairLoss::Robust,
     "label_smoothing has a meaning for the losses sigmoid and robust only", options.label_smoothing);
  is(options.loss != PairLoss::Robust || options.label_smoothing > 0,
     "robust needs a label_smoothing above 0: the share of labels that are wrong", options.label_smoothing);
  is(!options.odds || (options.by_length && !options.reference),
     "odds are of a mean log-probability without a reference", 1);
}

}  // namespace detail

/// The objective over the pairs of a micro-batch. Metrics are TRL's, but as sums: rewards/chosen, rewards/rejected,
/// rewards/accuracies, rewards/margins, logps/chosen, logps/rejected, nll_loss. A reward is beta (or ORPO's lambda)
/// times log p, minus the reference's where there is one, else by length where the method has it so.
inline Objective preference_loss(const PairLogProbs& pairs, const PreferenceOptions& options) {
  detail::check(options);
  const auto chosen_ratio = detail::log_ratio(pairs.chosen, pairs.reference_chosen, options);
  const auto rejected_ratio = detail::log_ratio(pairs.rejected, pairs.reference_rejected, options);
  auto chosen = detail::by_length(chosen_ratio, pairs.chosen_length, options);
  auto rejected = detail::by_length(rejected_ratio, pairs.rejected_length, options);
  const double scale = options.beta * options.weight;
  const auto chosen_reward = scale * (options.reference ? chosen_ratio : chosen);
  const auto rejected_reward = scale * (options.reference ? rejected_ratio : rejected);
  if (options.odds) {
    chosen = chosen - detail::log1mexp(chosen);
    rejected = rejected - detail::log1mexp(rejected);
  }
  const auto difference = chosen - rejected - options.margin / options.beta;
  const auto count = pairs.chosen.size(0);
  auto sum = options.weight * detail::pair_losses(difference, options).sum();

  const auto nll_sum = pairs.nll_sum.defined() ? pairs.nll_sum : -pairs.chosen.sum();
  const auto nll_tokens = pairs.nll_tokens.defined() ? pairs.nll_tokens : pairs.chosen_length.sum();
  const auto nll = nll_sum.to(torch::kFloat32) / nll_tokens.clamp_min(1);
  // A mean over the micro-batch's tokens, as TRL has it, with the weight of its pairs.
  if (options.nll_weight != 0) sum = sum + options.nll_weight * static_cast<double>(count) * nll;

  return {.sum = sum,
          .count = count,
          .metrics = {metric_of("rewards/chosen", chosen_reward),
                      metric_of("rewards/rejected", rejected_reward),
                      metric_of("rewards/accuracies", chosen_reward > rejected_reward),
                      metric_of("rewards/margins", chosen_reward - rejected_reward),
                      metric_of("logps/chosen", pairs.chosen),
                      metric_of("logps/rejected", pairs.rejected),
                      {"nll_loss", (nll * static_cast<double>(count)).detach(), count}}};
}

}  // namespace sealift::trainer
