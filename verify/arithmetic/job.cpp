// SPDX-License-Identifier: Apache-2.0
// The list of what is digested.
// See job.hpp.
// Backward goes through the units in reverse, and a unit's weights get their gradients with it.
#include "verify/arithmetic/job.hpp"

#include <stdexcept>

namespace sealift::verify {
namespace {

constexpr std::int64_t kMostOfAJob = 1 << 20;

std::int64_t size_at(const nlohmann::json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number_integer()) {
    throw std::invalid_argument(std::string("the job has no whole number \"") + key + "\"");
  }
  const auto value = found->get<std::int64_t>();
  if (value < 1 || value > kMostOfAJob) {
    throw std::invalid_argument(std::string("the job's ") + key + " is " + std::to_string(value) + "; expected 1 to " +
                                std::to_string(kMostOfAJob));
  }
  return value;
}

Phrase what_of(const Place& place) {
  const auto& unit = place.unit;
  switch (place.phase) {
    case Phase::Weights:
      return {"memory: the weights of " + unit + " before the step", "内存：本步之前 " + unit + " 的权重"};
    case Phase::Forward:
      return {"forward: the output of " + unit, "前向：" + unit + " 的输出"};
    case Phase::Backward:
      return {"backward: the gradient of the output of " + unit, "反向：" + unit + " 输出的梯度"};
    case Phase::Gradient:
      return {"backward: the gradients of the weights of " + unit, "反向：" + unit + " 权重的梯度"};
    case Phase::Update:
      return {"optimizer: the new weights of " + unit, "优化器：" + unit + " 的新权重"};
  }
  return {};
}

void add_step(std::vector<Place>& places, const std::vector<std::string>& units, const std::string& dtype,
              std::int64_t step) {
  const auto weighted = units.size() - 1;
  for (std::size_t i = 0; i < weighted; ++i) places.push_back({dtype, step, Phase::Weights, units[i]});
  for (const auto& unit : units) places.push_back({dtype, step, Phase::Forward, unit});
  for (std::size_t i = weighted; i-- > 0;) {
    places.push_back({dtype, step, Phase::Backward, units[i]});
    places.push_back({dtype, step, Phase::Gradient, units[i]});
  }
  for (std::size_t i = 0; i < weighted; ++i) places.push_back({dtype, step, Phase::Update, units[i]});
}

}  // namespace

nlohmann::json to_json(const ArithmeticJob& job) {
  return {{"layers", job.layers},       {"width", job.width},           {"heads", job.heads},
          {"mlp_width", job.mlp_width}, {"vocabulary", job.vocabulary}, {"batch", job.batch},
          {"time", job.time},           {"steps", job.steps},           {"seed", job.seed},
          {"dtypes", job.dtypes}};
}

ArithmeticJob arithmetic_job_from(const nlohmann::json& json) {
  if (!json.is_object()) throw std::invalid_argument("the job is not an object");
  ArithmeticJob job{.layers = size_at(json, "layers"),
                    .width = size_at(json, "width"),
                    .heads = size_at(json, "heads"),
                    .mlp_width = size_at(json, "mlp_width"),
                    .vocabulary = size_at(json, "vocabulary"),
                    .batch = size_at(json, "batch"),
                    .time = size_at(json, "time"),
                    .steps = size_at(json, "steps")};
  if (job.layers * job.steps > kMostOfAJob) throw std::invalid_argument("the job has too many layers and steps");
  const auto seed = json.find("seed"), dtypes = json.find("dtypes");
  if (seed == json.end() || !seed->is_number_unsigned()) throw std::invalid_argument("the job has no seed");
  job.seed = seed->get<std::uint64_t>();
  if (dtypes == json.end() || (*dtypes != nlohmann::json{"fp32"} && *dtypes != nlohmann::json{"bf16"} &&
                               *dtypes != nlohmann::json{"fp32", "bf16"})) {
    throw std::invalid_argument("the job's dtypes are not fp32, bf16 or both in this order");
  }
  job.dtypes = dtypes->get<std::vector<std::string>>();
  return job;
}

std::vector<std::string> units_of(const ArithmeticJob& job) {
  std::vector<std::string> units{"embed_tokens"};
  for (std::int64_t layer = 0; layer < job.layers; ++layer) {
    const auto prefix = "layers." + std::to_string(layer) + ".";
    for (const auto* part : {"input_layernorm", "self_attn", "post_attention_layernorm", "mlp"}) {
      units.push_back(prefix + part);
    }
  }
  for (const auto* unit : {"norm", "lm_head", "loss"}) units.push_back(unit);
  return units;
}

std::vector<Place> places_of(const ArithmeticJob& job) {
  const auto units = units_of(job);
  std::vector<Place> places;
  for (const auto& dtype : job.dtypes) {
    for (std::int64_t step = 0; step < job.steps; ++step) add_step(places, units, dtype, step);
  }
  return places;
}

std::int64_t products_of(const ArithmeticJob& job) {
  constexpr std::int64_t kOfALayer = 7, kHead = 1, kForwardAndBackward = 3;
  return static_cast<std::int64_t>(job.dtypes.size()) * job.steps * kForwardAndBackward *
         (kOfALayer * job.layers + kHead);
}

Phrase text_of(const Place& place) {
  const auto what = what_of(place);
  const auto step = std::to_string(place.step + 1);
  return {place.dtype + ", step " + step + ", " + what.en, place.dtype + "，第 " + step + " 步，" + what.zh};
}

}  // namespace sealift::verify
