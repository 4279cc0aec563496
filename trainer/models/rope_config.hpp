// SPDX-License-Identifier: Apache-2.0
// What a config.json says of rotary position embedding, in any of the forms that transformers reads.
// A part of `DecoderConfig`; rope.hpp makes the tables from it.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

namespace sealift::trainer {

class ConfigKeys;

/// How rotary frequencies are stretched for contexts beyond those of pretraining.
enum class RopeScaling { None, Linear, Dynamic, Yarn, Llama3 };

/// Rotary position embedding, as `rope_parameters` (transformers 5) or `rope_theta` with `rope_scaling` (4) say it.
struct RopeConfig {
  RopeScaling scaling = RopeScaling::None;
  double theta = 10000;                         ///< base of the frequencies
  double factor = 1;                            ///< by which the context grew; at least 1
  std::int64_t original_positions = 0;          ///< yarn, llama3: context of pretraining
  double low_frequency_factor = 1;              ///< llama3
  double high_frequency_factor = 4;             ///< llama3
  std::optional<double> attention_factor = {};  ///< yarn: scale of the tables; unset: computed from factor and mscale
  double mscale = 0, mscale_all_dim = 0;        ///< yarn; 0: not given
  double beta_fast = 32, beta_slow = 1;         ///< yarn
  bool truncate = true;                         ///< yarn: the correction range in whole dimensions
};

/// `theta`: the family's base of the frequencies, where the file says none. Throws c10::Error as `ConfigKeys` does.
RopeConfig read_rope(ConfigKeys& top, double theta, std::int64_t max_positions);

/// Of a family whose layers with a window turn otherwise than those that see all: those that see all, then the others.
/// `rope_parameters` has full_attention and sliding_attention; `rope_scaling` beside rope_theta is of the first only.
std::pair<RopeConfig, RopeConfig> read_ropes(ConfigKeys& top, double theta, double window_theta,
                                             std::int64_t max_positions);

}  // namespace sealift::trainer
