// SPDX-License-Identifier: Apache-2.0
// See rope_config.hpp.
#include "trainer/models/rope_config.hpp"

#include "trainer/models/config_keys.hpp"
#include "trainer/models/families.hpp"

#include <c10/util/StringUtil.h>

namespace sealift::trainer {
namespace {

RopeScaling scaling_of(ConfigKeys& keys, const ConfigKeys::Json& json, const Family& family) {
  const std::string key = json.contains("rope_type") ? "rope_type" : "type";
  const auto name = keys.text(key, "default");
  if (name == "default") return RopeScaling::None;
  if (family.original_positions > 0) {  // the names that its files have had; others transformers refuses of it
    if (name == "longrope" || name == "su" || name == "yarn") return RopeScaling::Long;
    keys.refuse(key, "default or longrope");
  }
  if (name == "linear") return RopeScaling::Linear;
  if (name == "dynamic") return RopeScaling::Dynamic;
  if (name == "yarn") return RopeScaling::Yarn;
  if (name == "llama3") return RopeScaling::Llama3;
  keys.refuse(key, "default, linear, dynamic, yarn or llama3");
}

/// partial_rotary_factor; `otherwise` where there is none.
double read_part(ConfigKeys& keys, const Family& family, double otherwise) {
  const auto part = keys.number("partial_rotary_factor", 0, 1, otherwise);
  if (!family.rotary_part && part != 1) keys.refuse("partial_rotary_factor", "1, the whole head, in this family");
  return part;
}

void check_turned(const ConfigKeys& keys, const RopeConfig& rope, std::int64_t head_dim) {
  const auto turned = rope.turned(head_dim);
  if (turned < 2 || turned % 2 != 0) {
    keys.refuse("partial_rotary_factor",
                c10::str("one by which an even number of a head's ", head_dim, " elements turns, not ", turned));
  }
}

/// One positive number for each pair of elements that turns.
std::vector<double> read_factors(ConfigKeys& keys, const std::string& key, std::int64_t pairs) {
  const auto* list = keys.find(key);
  const auto expected = c10::str("a list of ", pairs, " numbers above 0, one for each pair that turns");
  if (!list || !list->is_array() || std::ssize(*list) != pairs) keys.refuse(key, expected);
  std::vector<double> factors;
  for (const auto& each : *list) {
    const auto factor = each.is_number() ? each.get<double>() : 0;
    if (!(factor >= 1e-6 && factor <= 1e6)) keys.refuse(key, expected);
    factors.push_back(factor);
  }
  return factors;
}

/// The factor where transformers computes it from the context, if the file has none.
double read_growth(ConfigKeys& keys, const RopeConfig& rope, std::int64_t max_positions, double least) {
  return keys.number("factor", least, 1e6,
                     static_cast<double>(max_positions) / static_cast<double>(rope.original_positions));
}

void read_long(ConfigKeys& keys, RopeConfig& rope, std::int64_t head_dim, std::int64_t max_positions) {
  const auto pairs = rope.turned(head_dim) / 2;
  rope.short_factors = read_factors(keys, "short_factor", pairs);
  rope.long_factors = read_factors(keys, "long_factor", pairs);
  rope.factor = read_growth(keys, rope, max_positions, 1e-6);
  if (keys.find("attention_factor")) rope.attention_factor = keys.number("attention_factor", 0, 1e6);
}

/// `rope` with what `json` says; `original`: the context of pretraining, as the folder's older form has it, or 0.
RopeConfig read_scaled(const ConfigKeys::Json& json, const std::string& where, const Family& family, RopeConfig rope,
                       std::int64_t original, std::int64_t head_dim, std::int64_t max_positions) {
  ConfigKeys keys(json, where);
  keys.ignore("type");
  rope.theta = keys.number("rope_theta", 1 + 1e-9, 1e15, rope.theta);
  rope.part = read_part(keys, family, rope.part);
  check_turned(keys, rope, head_dim);
  rope.scaling = scaling_of(keys, json, family);
  const bool is_long = rope.scaling == RopeScaling::Long;
  const bool has_original = is_long || rope.scaling == RopeScaling::Yarn || rope.scaling == RopeScaling::Llama3;
  rope.original_positions = keys.integer("original_max_position_embeddings", 1, ConfigKeys::kMost, max_positions);
  if (has_original && original > 0) rope.original_positions = original;  // transformers' order
  if (is_long) {
    read_long(keys, rope, head_dim, max_positions);
  } else if (rope.scaling == RopeScaling::Yarn) {
    rope.factor = read_growth(keys, rope, max_positions, 1);
  } else if (rope.scaling != RopeScaling::None) {
    rope.factor = keys.number("factor", 1, 1e6);
  } else {
    keys.ignore("factor");
  }
  if (rope.scaling == RopeScaling::Llama3) {
    rope.low_frequency_factor = keys.number("low_freq_factor", 1e-6, 1e6);
    rope.high_frequency_factor = keys.number("high_freq_factor", 1e-6, 1e6);
    if (rope.high_frequency_factor <= rope.low_frequency_factor) keys.refuse("high_freq_factor", "more than the low");
  }
  if (rope.scaling == RopeScaling::Yarn) {
    if (keys.find("attention_factor")) rope.attention_factor = keys.number("attention_factor", 0, 1e6);
    rope.mscale = keys.number("mscale", 0, 1e6, 0.0);
    rope.mscale_all_dim = keys.number("mscale_all_dim", 0, 1e6, 0.0);
    // transformers takes its default for 0 too.
    const auto or_default = [](double value, double otherwise) { return value == 0 ? otherwise : value; };
    rope.beta_fast = or_default(keys.number("beta_fast", 0, 1e6, 0.0), 32);
    rope.beta_slow = or_default(keys.number("beta_slow", 0, 1e6, 0.0), 1);
    rope.truncate = keys.flag("truncate", true);
  }
  keys.check_all_taken();
  return rope;
}

}  // namespace

/// `json`: rope_scaling, which transformers lets win, or rope_parameters. What stands beside them, the folder's older
/// form, is taken where they say nothing.
RopeConfig read_rope(ConfigKeys& top, const Family& family, std::int64_t head_dim, std::int64_t max_positions) {
  RopeConfig rope{.by_neighbours = family.rope_by_neighbours};
  rope.theta = top.number("rope_theta", 1 + 1e-9, 1e15, family.theta);
  rope.part = read_part(top, family, family.rotary_part.value_or(1));
  const auto* parameters = top.find("rope_parameters");
  const auto* scaling = top.find("rope_scaling");
  const bool is_old = scaling && !(scaling->is_object() && scaling->empty());
  const auto of_family = family.rope ? ConfigKeys::Json::parse(family.rope) : ConfigKeys::Json();
  const auto* json = is_old ? scaling : parameters ? parameters : family.rope ? &of_family : nullptr;
  const auto least = family.original_positions > 0 ? 2 : 1;  // its logarithm divides
  const auto original =
      top.integer("original_max_position_embeddings", least, ConfigKeys::kMost, family.original_positions);
  if (!json) {
    check_turned(top, rope, head_dim);
    return rope;
  }
  return read_scaled(*json, top.where() + ", " + (is_old ? "rope_scaling" : "rope_parameters"), family, rope, original,
                     head_dim, max_positions);
}

std::pair<RopeConfig, RopeConfig> read_ropes(ConfigKeys& top, const Family& family, std::int64_t head_dim,
                                             std::int64_t max_positions) {
  RopeConfig full, window;
  full.theta = top.number("rope_theta", 1 + 1e-9, 1e15, family.theta);
  window.theta = family.window_theta;  // transformers takes rope_theta for the first only
  if (family.window_theta_key) window.theta = top.number(family.window_theta_key, 1 + 1e-9, 1e15, window.theta);
  const auto* parameters = top.find("rope_parameters");
  const auto* scaling = top.find("rope_scaling");
  if (scaling && scaling->is_object() && scaling->empty()) scaling = nullptr;
  if (scaling && parameters) top.refuse("rope_scaling", "none beside rope_parameters");
  if (scaling) full = read_scaled(*scaling, top.where() + ", rope_scaling", family, full, 0, head_dim, max_positions);
  if (parameters) {
    ConfigKeys kinds(*parameters, top.where() + ", rope_parameters");
    const auto read = [&](const char* kind, RopeConfig& rope) {
      const auto* json = kinds.find(kind);
      if (json) rope = read_scaled(*json, kinds.where() + ", " + kind, family, rope, 0, head_dim, max_positions);
    };
    read("full_attention", full);
    read("sliding_attention", window);
    kinds.check_all_taken();
  }
  for (const auto& rope : {full, window}) {
    if (rope.scaling == RopeScaling::Dynamic)
      top.refuse(scaling ? "rope_scaling" : "rope_parameters", "a rope_type other than dynamic in this family");
  }
  return {full, window};
}

}  // namespace sealift::trainer
