// SPDX-License-Identifier: Apache-2.0
// The formulas, one by one those of transformers/optimization.py (5.23).
// See schedule.hpp. The keys of the parameters are those functions' arguments.
// Held to the original by tests/train/settings/schedule_test.cpp's values, and live by fine_tune_test.py.
#include "trainer/settings/schedule.hpp"

#include "trainer/settings/refuse.hpp"
#include "trainer/shown_number.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <stdexcept>
#include <vector>

namespace sealift::trainer {
namespace {

/// Which keys each type takes. "wsd" is what papers call warmup_stable_decay.
const std::map<std::string, std::vector<std::string>>& types() {
  static const std::vector<std::string> wsd = {"num_decay_steps", "num_stable_steps", "warmup_type",
                                               "decay_type",      "min_lr_ratio",     "num_cycles"};
  static const std::map<std::string, std::vector<std::string>> table = {
      {"constant", {}},
      {"constant_with_warmup", {}},
      {"linear", {}},
      {"cosine", {"num_cycles"}},
      {"cosine_with_restarts", {"num_cycles"}},
      {"polynomial", {"lr_end", "power"}},
      {"inverse_sqrt", {"timescale"}},
      {"cosine_with_min_lr", {"num_cycles", "min_lr", "min_lr_rate"}},
      {"cosine_warmup_with_min_lr", {"num_cycles", "min_lr", "min_lr_rate", "warmup_lr_rate"}},
      {"warmup_stable_decay", wsd},
      {"wsd", wsd}};
  return table;
}

template <class Names, class Name>
std::string listed(const Names& names, const Name& name_of) {
  std::string text;
  for (const auto& each : names) text += (text.empty() ? "" : ", ") + name_of(each);
  return text.empty() ? "none" : text;
}

nlohmann::json parameters_of(const ScheduleOptions& options, const std::vector<std::string>& known) {
  if (options.parameters.empty()) return nlohmann::json::object();
  const auto json = nlohmann::json::parse(options.parameters, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    refuse("lr_scheduler_kwargs is '" + options.parameters + "'; expected a JSON object as {\"min_lr\": 1e-6}");
  }
  for (const auto& [key, value] : json.items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    refuse("lr_scheduler_kwargs has '" + key + "'; lr_scheduler_type " + options.type + " takes " +
           listed(known, [](const auto& name) { return name; }));
  }
  return json;
}

double number(const nlohmann::json& json, const char* key, double otherwise) {
  if (!json.contains(key)) return otherwise;
  const auto& value = json.at(key);
  if (!value.is_number() || value.get<double>() < 0) {
    refuse("lr_scheduler_kwargs: " + std::string(key) + " is " + value.dump() + "; expected a number, not negative");
  }
  return value.get<double>();
}

std::string shape(const nlohmann::json& json, const char* key, const std::string& otherwise) {
  if (!json.contains(key)) return otherwise;
  for (const char* known : {"linear", "cosine", "1-sqrt"}) {
    if (json.at(key) == known) return known;
  }
  refuse("lr_scheduler_kwargs: " + std::string(key) + " is " + json.at(key).dump() +
         "; use one of linear, cosine, 1-sqrt");
}

double part(std::int64_t done, std::int64_t all) {
  return static_cast<double>(done) / static_cast<double>(std::max<std::int64_t>(1, all));
}

double cosine(double cycles, double progress) {
  return 0.5 * (1 + std::cos(std::numbers::pi * cycles * 2 * progress));
}

double above(double factor, double least) {
  return std::max(0.0, factor * (1 - least) + least);
}

/// transformers rounds up; axolotl down, and makes 2 of 1.
std::int64_t warmup_of(const ScheduleOptions& options) {
  const auto steps = static_cast<double>(options.steps);
  if (options.warmup_rule != "axolotl") return static_cast<std::int64_t>(std::ceil(steps * options.warmup_ratio));
  const auto part = options.warmup_ratio > 0 ? steps * options.warmup_ratio : std::min(0.03 * steps, 100.0);
  const auto warmup = static_cast<std::int64_t>(part);
  return warmup == 1 ? 2 : warmup;
}

}  // namespace

Schedule::Schedule(const ScheduleOptions& options) : options_(options) {
  const auto type = types().find(options.type);
  if (type == types().end()) {
    refuse("lr_scheduler_type is '" + options.type + "'; use one of " +
           listed(types(), [](const auto& each) { return each.first; }));
  }
  if (options_.type == "wsd") options_.type = "warmup_stable_decay";
  if (!(options.warmup_ratio >= 0 && options.warmup_ratio <= 1)) {
    refuse("warmup_ratio is " + exact_number(options.warmup_ratio) + "; expected a part of the steps, 0 to 1");
  }
  warmup_ = options.warmup_steps > 0 ? options.warmup_steps : warmup_of(options);
  const auto json = parameters_of(options, type->second);
  num_cycles_ = number(json, "num_cycles", options_.type == "cosine_with_restarts" ? 1 : 0.5);
  lr_end_ = number(json, "lr_end", lr_end_);
  power_ = number(json, "power", power_);
  timescale_ = static_cast<std::int64_t>(number(json, "timescale", static_cast<double>(warmup_ > 0 ? warmup_ : 10000)));
  warmup_lr_rate_ = number(json, "warmup_lr_rate", warmup_lr_rate_);
  warmup_type_ = shape(json, "warmup_type", warmup_type_);
  decay_type_ = shape(json, "decay_type", decay_type_);

  const bool is_stable = options_.type == "warmup_stable_decay";
  min_lr_rate_ = number(json, is_stable ? "min_lr_ratio" : "min_lr_rate", 0);
  if (json.contains("min_lr")) {
    if (json.contains("min_lr_rate")) refuse("lr_scheduler_kwargs has min_lr and min_lr_rate; give one of the two");
    min_lr_rate_ = number(json, "min_lr", 0) / options.learning_rate;
  }
  const bool has_least = json.contains("min_lr") || json.contains("min_lr_rate");
  if (options_.type.ends_with("min_lr") && !has_least) {
    refuse("lr_scheduler_type " + options_.type + " needs lr_scheduler_kwargs with min_lr or min_lr_rate, as '" +
           "{\"min_lr\": 1e-6}'");
  }
  if (is_stable && !json.contains("num_decay_steps")) {
    refuse("lr_scheduler_type " + options_.type + " needs lr_scheduler_kwargs with num_decay_steps");
  }
  num_decay_steps_ = static_cast<std::int64_t>(number(json, "num_decay_steps", 0));
  const auto rest = std::max<std::int64_t>(0, options.steps - warmup_ - num_decay_steps_);
  num_stable_steps_ = static_cast<std::int64_t>(number(json, "num_stable_steps", static_cast<double>(rest)));
}

double Schedule::factor(std::int64_t step) const {
  if (options_.type == "constant") return 1;
  if (step >= warmup_) return decayed(step);
  const auto progress = part(step, warmup_);
  if (options_.type == "cosine_warmup_with_min_lr") {
    if (warmup_lr_rate_ < 0) return part(step + 1, warmup_);
    return warmup_lr_rate_ + (1 - warmup_lr_rate_) * part(step, warmup_ - 1);
  }
  if (options_.type != "warmup_stable_decay") return progress;
  if (warmup_type_ == "cosine") return above(0.5 * (1 - std::cos(std::numbers::pi * progress)), min_lr_rate_);
  return above(warmup_type_ == "linear" ? progress : 1 - std::sqrt(1 - progress), min_lr_rate_);
}

/// After the warm-up.
double Schedule::decayed(std::int64_t step) const {
  const auto& type = options_.type;
  const auto progress = part(step - warmup_, options_.steps - warmup_);
  if (type == "constant_with_warmup") return 1;
  if (type == "linear") return std::max(0.0, part(options_.steps - step, options_.steps - warmup_));
  if (type == "cosine") return std::max(0.0, cosine(num_cycles_, progress));
  if (type == "cosine_with_restarts") {
    return progress >= 1 ? 0 : std::max(0.0, cosine(0.5, std::fmod(num_cycles_ * progress, 1.0)));
  }
  if (type == "polynomial") {
    const auto end = lr_end_ / options_.learning_rate;
    return step > options_.steps ? end : (1 - end) * std::pow(1 - progress, power_) + end;
  }
  if (type == "inverse_sqrt") return 1 / std::sqrt(part(step + timescale_ - warmup_, timescale_));
  if (type == "cosine_with_min_lr") return above(cosine(num_cycles_, progress), min_lr_rate_);
  if (type == "cosine_warmup_with_min_lr") {
    return above(cosine(num_cycles_, part(step - warmup_ + 1, options_.steps - warmup_)), min_lr_rate_);
  }
  const auto after = step - warmup_ - num_stable_steps_;  // warmup_stable_decay
  if (after < 0) return 1;
  if (after >= num_decay_steps_) return min_lr_rate_;
  const auto gone = part(after, num_decay_steps_);
  if (decay_type_ == "cosine") return above(cosine(num_cycles_, gone), min_lr_rate_);
  return above(decay_type_ == "linear" ? 1 - gone : 1 - std::sqrt(gone), min_lr_rate_);
}

}  // namespace sealift::trainer
