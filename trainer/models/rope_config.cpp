// SPDX-License-Identifier: Apache-2.0
// See rope_config.hpp.
#include "trainer/models/rope_config.hpp"

#include "trainer/models/config_keys.hpp"

namespace sealift::trainer {
namespace {

RopeScaling scaling_of(ConfigKeys& keys, const ConfigKeys::Json& json) {
  const std::string key = json.contains("rope_type") ? "rope_type" : "type";
  const auto name = keys.text(key, "default");
  if (name == "default") return RopeScaling::None;
  if (name == "linear") return RopeScaling::Linear;
  if (name == "dynamic") return RopeScaling::Dynamic;
  if (name == "yarn") return RopeScaling::Yarn;
  if (name == "llama3") return RopeScaling::Llama3;
  keys.refuse(key, "default, linear, dynamic, yarn or llama3");
}

/// `rope` with what `json` says; `original`: the context of pretraining, as the folder's older form has it, or 0.
RopeConfig read_scaled(const ConfigKeys::Json& json, const std::string& where, RopeConfig rope, std::int64_t original,
                       std::int64_t max_positions) {
  ConfigKeys keys(json, where);
  keys.ignore("type");
  rope.theta = keys.number("rope_theta", 1 + 1e-9, 1e15, rope.theta);
  if (keys.number("partial_rotary_factor", 0, 1, 1.0) != 1) keys.refuse("partial_rotary_factor", "1, the whole head");
  rope.scaling = scaling_of(keys, json);
  const bool has_original = rope.scaling == RopeScaling::Yarn || rope.scaling == RopeScaling::Llama3;
  rope.original_positions = keys.integer("original_max_position_embeddings", 1, ConfigKeys::kMost, max_positions);
  if (has_original && original > 0) rope.original_positions = original;  // transformers' order
  if (rope.scaling == RopeScaling::Yarn) {
    rope.factor = static_cast<double>(max_positions) / static_cast<double>(rope.original_positions);
    rope.factor = keys.number("factor", 1, 1e6, rope.factor);
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
RopeConfig read_rope(ConfigKeys& top, double theta, std::int64_t max_positions) {
  RopeConfig rope;
  rope.theta = top.number("rope_theta", 1 + 1e-9, 1e15, theta);
  if (top.number("partial_rotary_factor", 0, 1, 1.0) != 1) top.refuse("partial_rotary_factor", "1, the whole head");
  const auto* parameters = top.find("rope_parameters");
  const auto* scaling = top.find("rope_scaling");
  const bool is_old = scaling && !(scaling->is_object() && scaling->empty());
  const auto* json = is_old ? scaling : parameters;
  const auto original = top.integer("original_max_position_embeddings", 1, ConfigKeys::kMost, 0);
  if (!json) return rope;

  return read_scaled(*json, top.where() + ", " + (is_old ? "rope_scaling" : "rope_parameters"), rope, original,
                     max_positions);
}

std::pair<RopeConfig, RopeConfig> read_ropes(ConfigKeys& top, double theta, double window_theta,
                                             std::int64_t max_positions) {
  RopeConfig full, window;
  full.theta = top.number("rope_theta", 1 + 1e-9, 1e15, theta);
  window.theta = window_theta;  // transformers takes rope_theta for the first only
  const auto* parameters = top.find("rope_parameters");
  const auto* scaling = top.find("rope_scaling");
  if (scaling && scaling->is_object() && scaling->empty()) scaling = nullptr;
  if (scaling && parameters) top.refuse("rope_scaling", "none beside rope_parameters");
  if (scaling) full = read_scaled(*scaling, top.where() + ", rope_scaling", full, 0, max_positions);
  if (parameters) {
    ConfigKeys kinds(*parameters, top.where() + ", rope_parameters");
    const auto read = [&](const char* kind, RopeConfig& rope) {
      const auto* json = kinds.find(kind);
      if (json) rope = read_scaled(*json, kinds.where() + ", " + kind, rope, 0, max_positions);
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
