// SPDX-License-Identifier: Apache-2.0
// What fine-tuning says to the loop, in the order in which a step asks.
// See fine_tune_job.hpp. Ranks exchange three numbers before a step (what it is divided by) and its sums after it.
// A rank that has fewer micro-batches than another at an epoch's end runs an empty one, whose gradients are zero, so
// that all make the same collectives.
#include "trainer/fine_tune/fine_tune_job.hpp"

#include "trainer/failure.hpp"
#include "trainer/fine_tune/best_model.hpp"
#include "trainer/fine_tune/checkpoints.hpp"
#include "trainer/fine_tune/conditions.hpp"
#include "trainer/fine_tune/samples.hpp"
#include "trainer/fine_tune/sums.hpp"
#include "trainer/fine_tune/training_data.hpp"
#include "trainer/own_bundle.hpp"

namespace sealift::trainer {
namespace {

/// One micro-batch on the host; without rows it counts for nothing.
struct MicroBatch {
  ExampleRows rows;
  Batch batch;
};

MicroBatch micro_batch(const TokenView& file, ExampleRows rows, const BatchOptions& options) {
  auto batch = rows.empty() ? empty_batch(file, kEmptyTokens) : make_batch(file, rows, options);
  return {std::move(rows), std::move(batch)};
}

std::int64_t tokens_of(const Batch& batch) {
  return batch.sequence.ge(0).sum().item<std::int64_t>();
}

/// The mean over all examples of the evaluation's data and the objective's metrics, in evaluation mode and without
/// gradients. Collective.
std::pair<double, nlohmann::ordered_json> evaluate(FineTuning& tuning) {
  at::NoGradGuard no_grad;
  tuning.model->eval();
  const auto& place = tuning.training.place;
  auto& world = tuning.training.world;
  auto& goal = *tuning.evaluation_goal;
  const auto device = place.device.device;
  const auto& file = tuning.evaluation->view();
  MetricSums sums(device);
  std::int64_t weight = 0;
  auto all_rows = rows_in_order(file, tuning.options.per_device_eval_batch_size, place.rank, place.world_size);
  goal.begin(tuning.model, {file, all_rows, device, world});
  for (auto& rows : all_rows) {
    const auto micro = micro_batch(file, std::move(rows), goal.batch_options());
    const auto batch = to_device(micro.batch, device);
    if (micro.rows.empty()) {
      tuning.model(batch.tokens);
      continue;
    }
    weight += goal.weight(micro.batch);
    sums.add(goal.of(tuning.model, batch, micro.rows).objective);
  }
  tuning.model->train();
  const auto all = sum_over_ranks(world, {weight});
  sums.reduce(world);
  return {sums.loss() / static_cast<double>(std::max<std::int64_t>(1, all[0])), sums.metrics()};
}

class FineTuneJob final : public Job {
 public:
  explicit FineTuneJob(FineTuning& tuning) : tuning_(tuning), sums_(device()) {}

  std::int64_t begin_step() override {
    next_batches();
    std::vector<ExampleRows> rows;
    for (const auto& each : batches_) rows.push_back(each.rows);
    tuning_.goal->begin(tuning_.model, {tuning_.data.view(), rows, device(), tuning_.training.world});
    std::int64_t weight = 0, with_rows = 0, tokens = 0;
    for (const auto& each : batches_) {
      if (each.rows.empty()) continue;
      weight += tuning_.goal->weight(each.batch);
      tokens += tokens_of(each.batch);
      ++with_rows;
    }
    const auto all = sum_over_ranks(tuning_.training.world, {weight, with_rows, tokens});
    weight_ = static_cast<double>(std::max<std::int64_t>(1, all[0]));
    with_rows_ = static_cast<double>(all[1]);
    tokens_ = all[2];
    sums_ = MetricSums(device());
    return static_cast<std::int64_t>(batches_.size());
  }

  at::Tensor loss_of(std::int64_t number) override {
    const auto& micro = batches_[static_cast<std::size_t>(number)];
    const auto batch = to_device(micro.batch, device());
    const auto ranks = static_cast<double>(tuning_.training.place.world_size);
    if (micro.rows.empty()) {
      const auto [values, router_loss] = tuning_.model(batch.tokens);
      auto nothing = values.sum() * 0;
      return router_loss.defined() ? nothing + router_loss * 0 : nothing;
    }
    const auto [objective, router_loss] = tuning_.goal->of(tuning_.model, batch, micro.rows);
    sums_.add(objective);
    auto loss = objective.sum * (ranks / weight_);
    const auto coefficient = tuning_.options.router_aux_loss_coef;
    if (router_loss.defined() && coefficient > 0) loss = loss + router_loss * (coefficient * ranks / with_rows_);
    return loss;
  }

  StepSums end_step(const EndWishes& mine) override {
    sums_.add(mine);
    sums_.reduce(tuning_.training.world);
    return {.loss = sums_.loss() / weight_, .tokens = tokens_, .metrics = sums_.metrics(), .ends = sums_.ends()};
  }

  void begin_again() override { sums_ = MetricSums(device()); }

  std::string rows_of(std::int64_t number) const override {
    std::string text;
    for (const auto& row : batches_[static_cast<std::size_t>(number)].rows) {
      for (const auto example : row) text += (text.empty() ? "" : ", ") + std::to_string(example);
    }
    return text.empty() ? ", which has no rows" : " (examples " + text + " of the token file, counted from 0)";
  }

  const torch::nn::Module& model() const override { return *tuning_.model; }

  /// A step that the loss scale skips moves no schedule, as in transformers.
  double rate() const override {
    const bool stays = tuning_.training.options.scales && tuning_.options.on_nonfinite != "rollback";
    return tuning_.schedule.rate(position().step - (stays ? position().skipped : 0));
  }

  std::optional<nlohmann::ordered_json> more_of(const StepOutcome& outcome) const override {
    const auto number = position().step;
    if (number % tuning_.options.logging_steps != 0 && number != 1 && number != tuning_.training.options.steps)
      return {};
    nlohmann::ordered_json more{{"learning_rate", outcome.rate}, {"epoch", tuning_.sampler.epochs_done()}};
    more.update(outcome.metrics);
    return more;
  }

  void after_step(StepLog* log) override {
    const auto& options = tuning_.options;
    const bool evaluates = tuning_.evaluation && is_due(options.eval_strategy, options.eval_steps, is_last());
    if (evaluates) evaluate_and_judge(log);
    const bool samples = tuning_.evaluation ? evaluates : save_is_due() || is_last();
    if (options.sample_prompts > 0 && samples) write_samples(tuning_);
  }

  bool saves() const override { return tuning_.options.save_strategy != "no"; }

  bool save_is_due() const override {
    const auto& options = tuning_.options;
    return is_due(options.save_strategy, options.save_steps, is_last() || position().stopped);
  }

  /// What a run goes on from, which counts on the best evaluation so far.
  void save() override {
    const auto& options = tuning_.options;
    save(checkpoint_folder(options), options.save_total_limit);
    const auto best = position().best();
    if (!options.load_best_model_at_end || !best) return;
    tuning_.saved_best = best->step;
    if (tuning_.training.place.is_first()) keep_best_of(options, {best->step});
  }

  bool roll_back() override {
    const auto last = train::latest_checkpoint(checkpoint_folder(tuning_.options));
    if (!last) return false;
    auto& training = tuning_.training;
    const auto skipped = position().skipped;
    const auto rows = rows_of_step(tuning_.options, training.place.world_size);
    position() = load_position(*last, tuning_.options, rows, *tuning_.model, training.parallel, training.optimizer);
    position().skipped = skipped;
    if (training.options.scales) training.scaler.load_state(position().scaler);
    return true;
  }

 private:
  Position& position() const { return tuning_.training.position; }
  at::Device device() const { return tuning_.training.place.device.device; }
  bool is_last() const { return position().step == tuning_.training.options.steps; }

  /// What of `strategy` is due now: every `every` steps, at the end of an epoch, and after the last.
  bool is_due(const std::string& strategy, std::int64_t every, bool last) const {
    if (strategy == "no") return false;
    if (last) return true;
    if (strategy == "steps") return position().step % every == 0;
    const auto state = tuning_.sampler.state();
    return state.row == tuning_.sampler.rows(state.epoch);
  }

  /// This rank's micro-batches of the next step: as many as the rank with the most has.
  void next_batches() {
    auto rows = tuning_.sampler.next();
    auto options = tuning_.goal->batch_options();
    if (tuning_.options.packing) options.pad_to = static_cast<std::int64_t>(tuning_.sampler.row_length());
    rows.micro_batches.resize(static_cast<std::size_t>(rows.most_micro_batches));
    batches_.clear();
    for (auto& each : rows.micro_batches) {
      batches_.push_back(micro_batch(tuning_.data.view(), std::move(each), options));
    }
  }

  /// Evaluates, keeps the best and says whether to go on.
  void evaluate_and_judge(StepLog* log) {
    const auto& options = tuning_.options;
    const bool is_first = tuning_.training.place.is_first();
    const auto [loss, metrics] = evaluate(tuning_);
    position().evaluations.push_back({position().step, loss, metrics});
    nlohmann::ordered_json line{{"step", position().step}, {"eval_loss", loss}};
    for (const auto& [name, value] : metrics.items()) line["eval_" + name] = value;
    if (log) log->write(line);
    if (is_first) std::cerr << "step " << position().step << "  eval loss " << loss << '\n';
    const auto best = position().best();
    const bool is_best = best && best->step == position().step;
    if (is_best && options.load_best_model_at_end) keep_best();
    const auto patience = options.early_stop_interval;
    position().stopped = patience > 0 && position().without_better() >= patience;
  }

  /// Keeps the model of the evaluation that was just made; where it cannot, the one before stays the best.
  void keep_best() {
    const bool is_first = tuning_.training.place.is_first();
    try {
      save(best_folder(tuning_.options), 0);
    } catch (const train::SaveFailed& error) {
      position().evaluations.back().kept = false;
      if (is_first) say(std::string("the best model so far is not kept, the one before stays: ") + text_of(error));
      return;
    }
    if (is_first) keep_best_of(tuning_.options, {position().step, tuning_.saved_best});
  }

  void save(const std::filesystem::path& folder, std::int64_t keep) {
    auto& training = tuning_.training;
    position().sampler = tuning_.sampler.state();
    position().scaler = training.scaler.state();
    const auto rows = rows_of_step(tuning_.options, training.place.world_size);
    auto state = training_state(tuning_.options, rows, position());
    state.notes.merge(conditions_of(tuning_.options, training.place, training.options.steps));
    if (training.place.is_first()) state.notes["bundle"] = own_bundle().dump();  // it writes the index
    train::save_checkpoint(folder, *tuning_.model, training.parallel, &training.optimizer, state,
                           {.keep_last = keep, .frozen = !tuning_.options.has_adapters()});
  }

  FineTuning& tuning_;
  std::vector<MicroBatch> batches_;    ///< of the step
  double weight_ = 1, with_rows_ = 0;  ///< of the step over all ranks: what its loss is divided by, micro-batches
  std::int64_t tokens_ = 0;            ///< ...
  MetricSums sums_;
};

}  // namespace

std::int64_t rows_of_step(const FineTuneOptions& options, std::int64_t world_size) {
  return options.per_device_train_batch_size * options.micro_batches(world_size) * world_size;
}

void train_to_the_end(FineTuning& tuning, Monitor& monitor) {
  FineTuneJob job(tuning);
  train_to_the_end(tuning.training, job, monitor);
}

}  // namespace sealift::trainer
