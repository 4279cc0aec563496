// SPDX-License-Identifier: Apache-2.0
// Our objectives on cases that objectives_peer_test.py makes: JSON in, losses, gradients and metrics as JSON out.
// Token log-probabilities are laid out as a packed batch has them, two sequences a row, so sums are tried too.
//   objectives_peer CASES.json
#include "trainer/objectives/causal.hpp"
#include "trainer/objectives/kto.hpp"
#include "trainer/objectives/preference.hpp"
#include "trainer/objectives/reward.hpp"
#include "trainer/objectives/sequence_sums.hpp"

#include <nlohmann/json.hpp>

#include <fstream>
#include <iostream>

using namespace sealift::trainer;
using nlohmann::json;

namespace {

at::Tensor numbers(const json& values) {
  return torch::tensor(values.get<std::vector<float>>());
}

/// Answers' token log-probabilities in rows of two sequences, each after a token of the prompt that does not count.
struct Packed {
  at::Tensor values, sequence, counts;

  explicit Packed(const json& answers) {
    const auto count = static_cast<std::int64_t>(answers.size());
    std::int64_t longest = 0;
    for (const auto& answer : answers) longest = std::max(longest, static_cast<std::int64_t>(answer.size()));
    const std::vector<std::int64_t> shape = {(count + 1) / 2, 2 * (longest + 1)};
    values = torch::full(shape, -3.0F);
    sequence = torch::full(shape, -1, torch::kInt64);
    counts = torch::zeros(shape, torch::kBool);
    for (std::int64_t answer = 0; answer < count; ++answer) {
      const auto length = static_cast<std::int64_t>(answers[static_cast<std::size_t>(answer)].size());
      const auto begin = answer % 2 == 0 ? 0 : begin_of_second(answers, answer);
      sequence[answer / 2].narrow(0, begin, length + 1).fill_(answer);
      counts[answer / 2].narrow(0, begin + 1, length).fill_(true);
      values[answer / 2].narrow(0, begin + 1, length).copy_(numbers(answers[static_cast<std::size_t>(answer)]));
    }
    values.requires_grad_();
  }

  static std::int64_t begin_of_second(const json& answers, std::int64_t answer) {
    return static_cast<std::int64_t>(answers[static_cast<std::size_t>(answer - 1)].size()) + 1;
  }

  /// The gradient of each answer's tokens, one answer after the other.
  json gradient(std::int64_t answers) const {
    std::vector<float> result;
    for (std::int64_t answer = 0; answer < answers; ++answer) {
      const auto part = values.grad().masked_select((sequence == answer) & counts).contiguous();
      result.insert(result.end(), part.const_data_ptr<float>(), part.const_data_ptr<float>() + part.numel());
    }
    return result;
  }
};

PreferenceOptions options_of(const json& given) {
  auto options = preference_options(given.at("method").get<std::string>());
  options.beta = given.value("beta", options.beta);
  options.label_smoothing = given.value("label_smoothing", options.label_smoothing);
  options.margin = given.value("margin", options.margin);
  options.weight = given.value("weight", options.weight);
  options.nll_weight = given.value("nll_weight", options.nll_weight);
  return options;
}

Objective preference(const json& given, const Packed& packed, std::int64_t sequences) {
  const auto sums = sequence_sums(packed.values, packed.sequence, packed.counts, sequences);
  const auto lengths = sequence_lengths(packed.sequence, packed.counts, sequences);
  auto pairs = pair_log_probs(sums, lengths, given.contains("reference") ? numbers(given["reference"]) : at::Tensor());
  if (given.contains("nll_sum")) {
    pairs.nll_sum = torch::tensor(given["nll_sum"].get<float>());
    pairs.nll_tokens = torch::tensor(given["nll_tokens"].get<float>());
  }
  return preference_loss(pairs, options_of(given));
}

Objective kto(const json& given, const Packed& packed, std::int64_t sequences) {
  const auto sums = sequence_sums(packed.values, packed.sequence, packed.counts, sequences);
  const auto distance =
      kto_distance_of(kto_distance_sums(numbers(given["mismatched"]), numbers(given["reference_mismatched"])));
  return kto_loss(sums, numbers(given["reference"]), numbers(given["desirable"]).to(torch::kBool), distance,
                  {.beta = given["beta"],
                   .desirable_weight = given["desirable_weight"],
                   .undesirable_weight = given["undesirable_weight"],
                   .distance = given["distance"]});
}

json answer_to(const json& given) {
  const auto& objective = given.at("objective");
  const Packed packed(given["answers"]);
  const auto sequences = static_cast<std::int64_t>(given["answers"].size());
  Objective result;
  if (objective == "preference") result = preference(given, packed, sequences);
  if (objective == "kto") result = kto(given, packed, sequences);
  if (objective == "causal")
    result = causal_loss(packed.values.masked_fill(~packed.counts, 0), given["tokens"].get<std::int64_t>());
  if (objective == "reward")
    result = reward_loss(sequence_sums(packed.values, packed.sequence, packed.counts, sequences),
                         given.contains("margins") ? numbers(given["margins"]) : at::Tensor(),
                         {.center_coefficient = given["center_coefficient"]});
  (result.sum / static_cast<double>(result.count)).backward();
  json metrics;
  for (const auto& metric : result.metrics)
    metrics[metric.name] = metric.sum.item<double>() / static_cast<double>(metric.count);
  return {{"loss", result.mean()}, {"gradient", packed.gradient(sequences)}, {"metrics", metrics}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  json answers;
  for (const auto& given : json::parse(std::ifstream(argv[1]))) answers.push_back(answer_to(given));
  std::cout << answers.dump() << '\n';
  return 0;
}
