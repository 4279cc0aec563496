// SPDX-License-Identifier: Apache-2.0
// What one step sends over the network for the model: as counted, and by formula.
// Called around the backward by the job of `run.cpp`; goes into result.json.
// To check a cluster's network use: a count above the formula is padding, or a setting with an unexpected effect.
#pragma once

#include <sealift/train.hpp>

#include <nlohmann/json.hpp>

#include <cmath>

namespace sealift::trainer {

/// Counts the traffic of one step's forwards and backwards, without the few bytes of the loss and the gradient norm.
class StepTraffic {
 public:
  explicit StepTraffic(std::shared_ptr<train::TrafficReport> counters) : counters_(std::move(counters)) {}

  void begin_step() {
    before_ = *counters_;
    reductions_ = reductions(before_);
    gradient_syncs_ = 0;
  }

  /// After the backward of each micro-batch.
  void end_micro_batch() {
    const auto before = std::exchange(reductions_, reductions(*counters_));
    if (reductions_ > before) ++gradient_syncs_;
    const auto since = [](const train::Traffic& now, const train::Traffic& then) {
      return train::Traffic{.calls = now.calls - then.calls, .bytes = now.bytes - then.bytes};
    };
    step_ = {.all_gather = since(counters_->all_gather, before_.all_gather),
             .reduce_scatter = since(counters_->reduce_scatter, before_.reduce_scatter),
             .all_reduce = since(counters_->all_reduce, before_.all_reduce),
             .broadcast = since(counters_->broadcast, before_.broadcast),
             .all_to_all = since(counters_->all_to_all, before_.all_to_all)};
  }

  /// Of the last step.
  const train::TrafficReport& step() const { return step_; }

  /// Micro-batches of the last step after which gradients were summed over ranks.
  std::int64_t gradient_syncs() const { return gradient_syncs_; }

 private:
  static std::int64_t reductions(const train::TrafficReport& report) {
    return report.reduce_scatter.calls + report.all_reduce.calls;
  }

  std::shared_ptr<train::TrafficReport> counters_;
  train::TrafficReport before_, step_;
  std::int64_t reductions_ = 0, gradient_syncs_ = 0;
};

/// Bytes (no calls) that each rank sends per step for a model of `parameters` fp32 elements without buffers, of which
/// the root's unit holds `root`, with M micro-batches between which units stay gathered or not. With n ranks, of a
/// buffer of b bytes, a gather and a reduce-scatter send (n - 1) / n * b, an all-reduce twice that.
inline train::TrafficReport traffic_by_formula(const train::Policy& policy, const train::Mesh& mesh,
                                               std::int64_t parameters, std::int64_t root, std::int64_t micro_batches,
                                               bool keep_gathered) {
  const auto bytes_of = [](std::int64_t elements, std::optional<at::ScalarType> dtype) {
    return double(elements) * double(c10::elementSize(dtype.value_or(at::kFloat)));
  };
  const auto fraction = [](std::int64_t ranks) { return double(ranks - 1) / double(ranks); };
  const auto rounded = [](double bytes) { return train::Traffic{.bytes = std::llround(bytes)}; };
  const auto passes = double(micro_batches);
  train::TrafficReport report;

  // Everything for forward; for backward again what was freed, which the root never is.
  const bool keeps = keep_gathered && micro_batches > 1;
  const auto whole = bytes_of(parameters, policy.precision.param_dtype);
  const auto again = bytes_of(parameters - root, policy.precision.param_dtype);
  const auto group = policy.reshard_group > 0 ? policy.reshard_group : mesh.shard;
  double gathered = fraction(mesh.shard) * whole;
  if (!keeps && policy.reshard_after_forward && mesh.shard > 1) gathered += fraction(group) * again;
  report.all_gather = rounded(keeps ? gathered : passes * gathered);

  const auto gradients = bytes_of(parameters, policy.precision.reduce_dtype);
  const double syncs = policy.reduce_every_micro_batch ? passes : 1;
  const double syncs_of_copies = policy.defer_all_reduce ? 1 : syncs;
  report.reduce_scatter = rounded(syncs * fraction(mesh.shard) * gradients);
  report.all_reduce = rounded(syncs_of_copies * 2 * fraction(mesh.replicate) * gradients / double(mesh.shard));
  return report;
}

/// `counted` as JSON; with `formula`, its bytes as well.
inline nlohmann::ordered_json traffic_json(const train::TrafficReport& counted,
                                           const train::TrafficReport* formula = nullptr) {
  nlohmann::ordered_json json;
  for (auto [name, part] : {std::pair{"all_gather", &train::TrafficReport::all_gather},
                            {"reduce_scatter", &train::TrafficReport::reduce_scatter},
                            {"all_reduce", &train::TrafficReport::all_reduce},
                            {"broadcast", &train::TrafficReport::broadcast},
                            {"all_to_all", &train::TrafficReport::all_to_all}}) {
    json[name] = {{"calls", (counted.*part).calls}, {"bytes", (counted.*part).bytes}};
    if (formula) json[name]["bytes_by_formula"] = (formula->*part).bytes;
  }
  return json;
}

}  // namespace sealift::trainer
