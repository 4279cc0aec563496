// SPDX-License-Identifier: Apache-2.0
// What a job minimizes: from a model and a micro-batch to an objective's sum and count.
// Between the loop, which knows no objective, and `objectives/`, which know no model.
// A step's loss is the sum over all ranks and micro-batches by the weight over all of them, so a goal says a
// micro-batch's weight before its forward.
#pragma once

#include "data/batch.hpp"
#include "models/decoder.hpp"
#include "objectives/causal.hpp"
#include "objectives/preference.hpp"
#include "objectives/sequence_sums.hpp"

namespace sealift::trainer {

using Model = train::Shardable<Decoder>;

/// What a forward gives the loop.
struct Outcome {
  Objective objective;
  at::Tensor router_loss;  ///< a scalar; undefined without experts
};

class Goal {
 public:
  virtual ~Goal() = default;

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

/// Pairs of answers, one preferred. `reference`: of each sequence of the file its log-probability before training;
/// undefined where the method needs none.
class PreferenceGoal final : public Goal {
 public:
  explicit PreferenceGoal(PreferenceOptions options) : options_(options) {}

  std::int64_t weight(const Batch& batch) const override { return batch.examples; }

  Outcome of(Model& model, const Batch& batch, const ExampleRows& rows) override {
    const auto [log_probs, router_loss] = model(batch.tokens);
    const auto sums = sequence_sums(log_probs, batch.sequence, batch.counts, batch.sequences);
    const auto lengths = sequence_lengths(batch.sequence, batch.counts, batch.sequences);
    return {preference_loss(pair_log_probs(sums, lengths, reference_of(rows, sums.device())), options_), router_loss};
  }

  const PreferenceOptions& options() const { return options_; }
  /// [sequences of the file] fp32 on the host.
  void set_reference(at::Tensor sums) { reference_ = std::move(sums); }

 private:
  at::Tensor reference_of(const ExampleRows& rows, at::Device device) const {
    if (!options_.reference) return {};
    TORCH_CHECK(reference_.defined(), "the reference's log-probabilities were not computed before training");
    std::vector<std::int64_t> sequences;
    for (const auto& row : rows) {
      for (const std::int64_t example : row) sequences.insert(sequences.end(), {2 * example, 2 * example + 1});
    }
    return reference_.index_select(0, torch::tensor(sequences)).to(device);
  }

  PreferenceOptions options_;
  at::Tensor reference_;
};

}  // namespace sealift::trainer
