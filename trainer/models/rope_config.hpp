// SPDX-License-Identifier: Apache-2.0
// What a config.json says of rotary position embedding, in any of the forms that transformers reads.
// A part of `DecoderConfig`; rope.hpp makes the tables from it.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace sealift::trainer {

class ConfigKeys;
struct Family;

/// How rotary frequencies are stretched for contexts beyond those of pretraining.
enum class RopeScaling { None, Linear, Dynamic, Yarn, Llama3, Long };

/// Rotary position embedding, as `rope_parameters` (transformers 5) or `rope_theta` with `rope_scaling` (4) say it.
struct RopeConfig {
  RopeScaling scaling = RopeScaling::None;
  double theta = 10000;                         ///< base of the frequencies
  double part = 1;                              ///< of a head's elements, the first ones, that turn
  bool by_neighbours = false;                   ///< pairs are elements 0 and 1, 2 and 3 …, not one of each half
  double factor = 1;                            ///< by which the context grew; at least 1
  std::int64_t original_positions = 0;          ///< yarn, llama3, long: context of pretraining
  double low_frequency_factor = 1;              ///< llama3
  double high_frequency_factor = 4;             ///< llama3
  std::optional<double> attention_factor = {};  ///< yarn: scale of the tables; unset: computed from factor and mscale
  double mscale = 0, mscale_all_dim = 0;        ///< yarn; 0: not given
  double beta_fast = 32, beta_slow = 1;         ///< yarn
  bool truncate = true;                         ///< yarn: the correction range in whole dimensions
  /// long: what each frequency is divided by, up to the context of pretraining and beyond it
  std::vector<double> short_factors = {}, long_factors = {};

  /// Elements of a head of `head_dim` that turn.
  std::int64_t turned(std::int64_t head_dim) const {
    return static_cast<std::int64_t>(static_cast<double>(head_dim) * part);
  }
};

/// What a file of `family` says, and where it says nothing what the family has. Throws c10::Error as `ConfigKeys` does.
RopeConfig read_rope(ConfigKeys& top, const Family& family, std::int64_t head_dim, std::int64_t max_positions);

/// Of a family whose layers with a window turn otherwise than full layers: full layers, then the others.
/// `rope_parameters` has full_attention and sliding_attention; `rope_scaling` beside rope_theta is of the first only.
std::pair<RopeConfig, RopeConfig> read_ropes(ConfigKeys& top, const Family& family, std::int64_t head_dim,
                                             std::int64_t max_positions);

}  // namespace sealift::trainer
