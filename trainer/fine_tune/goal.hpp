// SPDX-License-Identifier: Apache-2.0
// What a job minimizes: from a model and a micro-batch to an objective's sum and count.
// Between the loop, which knows no objective, and `objectives/`, which know no model; goals.hpp makes them.
// A step's loss is the sum over all ranks and micro-batches by the weight over all of them, so a goal says a
// micro-batch's weight before its forward.
#pragma once

#include "trainer/data/batch.hpp"
#include "trainer/models/decoder.hpp"
#include "trainer/objectives/causal.hpp"
#include "trainer/objectives/kto.hpp"
#include "trainer/objectives/preference.hpp"
#include "trainer/objectives/reward.hpp"
#include "trainer/objectives/sequence_sums.hpp"

namespace sealift::trainer {

/// What a forward gives the loop.
struct Outcome {
  Objective objective;
  at::Tensor router_loss;  ///< a scalar; undefined without experts
};

/// Of each sequence of a file its answer's log-probability under the reference, [sequences] fp32 on the host.
struct Reference {
  at::Tensor own;
  at::Tensor mismatched;  ///< of make_mismatched_batch's sequences; of labelled answers only
};

/// A rank's micro-batches of a step, or of an evaluation, and with whom it shares them.
struct MicroBatches {
  const TokenView& file;
  const std::vector<ExampleRows>& micro_batches;
  at::Device device;
  train::Groups& world;
};

class Goal {
 public:
  virtual ~Goal() = default;

  virtual bool needs_reference() const { return false; }
  virtual void set_reference(Reference /*reference*/) {}

  /// Measures what the whole step must know before the first of its losses. Collective.
  virtual void begin(Model& /*model*/, const MicroBatches& /*step*/) {}

  /// What of it is a mean over each micro-batch, so that a step's loss depends on how its rows are cut into them;
  /// empty: nothing.
  virtual std::string mean_of_micro_batches() const { return {}; }

  /// What the sum of `batch` is divided by, with those of all other micro-batches.
  virtual std::int64_t weight(const Batch& batch) const = 0;

  /// How batches are made for it.
  virtual BatchOptions batch_options() const { return {}; }

  /// `batch` on the model's device, of the examples `rows`, which count for something.
  virtual Outcome of(Model& model, const Batch& batch, const ExampleRows& rows) = 0;
};

/// The labels' log-probability, for sft and pretrain.
class CausalGoal final : public Goal {
 public:
  std::int64_t weight(const Batch& batch) const override { return batch.answer_tokens; }

  Outcome of(Model& model, const Batch& batch, const ExampleRows& /*rows*/) override {
    const auto [log_probs, router_loss] = model(batch.tokens);
    return {causal_loss(log_probs, batch.answer_tokens), router_loss};
  }
};

/// A row that counts for nothing: what a rank without examples runs, so that all run the model as often.
inline constexpr std::int64_t kEmptyTokens = 8;

/// The reference's numbers for the examples of `rows`, `each` of an example, on `device`.
inline at::Tensor of_examples(const at::Tensor& reference, const ExampleRows& rows, std::int64_t each,
                              at::Device device) {
  TORCH_CHECK(reference.defined(), "the reference's log-probabilities were not computed before training");
  std::vector<std::int64_t> sequences;
  for (const auto& row : rows) {
    for (const std::int64_t example : row) {
      for (std::int64_t which = 0; which < each; ++which) sequences.push_back(each * example + which);
    }
  }
  return reference.index_select(0, torch::tensor(sequences)).to(device);
}

/// Pairs of answers, one preferred.
class PreferenceGoal final : public Goal {
 public:
  explicit PreferenceGoal(PreferenceOptions options) : options_(options) {}

  std::int64_t weight(const Batch& batch) const override { return batch.examples; }

  Outcome of(Model& model, const Batch& batch, const ExampleRows& rows) override {
    const auto [log_probs, router_loss] = model(batch.tokens);
    const auto sums = sequence_sums(log_probs, batch.sequence, batch.counts, batch.sequences);
    const auto lengths = sequence_lengths(batch.sequence, batch.counts, batch.sequences);
    const auto reference = options_.reference ? of_examples(reference_.own, rows, 2, sums.device()) : at::Tensor();
    return {preference_loss(pair_log_probs(sums, lengths, reference), options_), router_loss};
  }

  bool needs_reference() const override { return options_.reference; }
  void set_reference(Reference reference) override { reference_ = std::move(reference); }
  std::string mean_of_micro_batches() const override {
    return options_.nll_weight == 0 ? "" : "the NLL of the chosen answers (RPO, CPO, ORPO)";
  }

 private:
  PreferenceOptions options_;
  Reference reference_;
};

/// Single answers, good or bad. Its distance is one of the whole step, so `begin` runs the model over mismatched
/// answers first. `longest`: tokens that such a sequence may have.
class KtoGoal final : public Goal {
 public:
  KtoGoal(KtoOptions options, std::int64_t longest) : options_(options), longest_(longest) {}

  std::int64_t weight(const Batch& batch) const override { return batch.examples; }
  bool needs_reference() const override { return true; }
  void set_reference(Reference reference) override { reference_ = std::move(reference); }

  void begin(Model& model, const MicroBatches& step) override {
    if (!options_.distance) return;
    at::NoGradGuard no_grad;
    auto sums = torch::zeros({2}, at::dtype(at::kFloat).device(step.device));
    for (const auto& rows : step.micro_batches) {
      const auto batch = to_device(rows.empty() ? empty_batch(step.file, kEmptyTokens)
                                                : make_mismatched_batch(step.file, rows, {.cut_at = longest_}),
                                   step.device);
      const auto log_probs = std::get<0>(model(batch.tokens));
      if (rows.empty()) continue;
      const auto policy = sequence_sums(log_probs, batch.sequence, batch.counts, batch.sequences);
      sums += kto_distance_sums(policy, of_examples(reference_.mismatched, rows, 1, step.device));
    }
    step.world.world.all_reduce(sums).wait();
    distance_ = kto_distance_of(sums);
  }

  Outcome of(Model& model, const Batch& batch, const ExampleRows& rows) override {
    const auto [log_probs, router_loss] = model(batch.tokens);
    const auto sums = sequence_sums(log_probs, batch.sequence, batch.counts, batch.sequences);
    const auto reference = of_examples(reference_.own, rows, 1, sums.device());
    return {kto_loss(sums, reference, batch.values > 0.5, distance_, options_, batch.desirable), router_loss};
  }

 private:
  KtoOptions options_;
  std::int64_t longest_;
  Reference reference_;
  at::Tensor distance_;  ///< of the step; undefined where the options need none
};

/// Scores of pairs, of a model with a reward head.
class RewardGoal final : public Goal {
 public:
  explicit RewardGoal(RewardOptions options) : options_(options) {}

  std::int64_t weight(const Batch& batch) const override { return batch.examples; }

  Outcome of(Model& model, const Batch& batch, const ExampleRows& /*rows*/) override {
    const auto [scores, router_loss] = model(batch.tokens);
    return {reward_loss(scores, batch.values, options_), router_loss};
  }

 private:
  RewardOptions options_;
};

}  // namespace sealift::trainer
