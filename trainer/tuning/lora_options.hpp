// SPDX-License-Identifier: Apache-2.0
// What a LoRA is: rank, scaling, and which modules of a model have it.
// Below lora_targets.hpp, which finds the modules, and lora.hpp, which adds the adapters. Names and defaults are
// PEFT's.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace sealift::trainer {

enum class LoraInit {
  Kaiming,   ///< PEFT's true: A uniform within +-1 / sqrt(in), B zero
  Gaussian,  ///< PEFT's "gaussian": A normal with a deviation of 1 / rank, B zero
};

/// What a saved adapter's config says of single modules, as PEFT reads it. Expressions are of whole paths, or of what
/// follows a dot in one; of several that match the first counts.
struct LoraPatterns {
  std::vector<std::pair<std::string, std::int64_t>> ranks;  ///< rank_pattern
  std::vector<std::pair<std::string, double>> alphas;       ///< alpha_pattern
  std::vector<std::string> excluded;                        ///< exclude_modules, names as in target_modules
  std::string excluded_regex;                               ///< exclude_modules as an expression
  std::vector<std::int64_t> layers;                         ///< layers_to_transform; empty: all
  std::vector<std::string> layer_names;                     ///< layers_pattern; empty: any

  bool choose_modules() const { return !excluded.empty() || !excluded_regex.empty() || !layers.empty(); }
};

struct LoraOptions {
  std::int64_t rank = 8;  ///< PEFT's r
  double alpha = 8;       ///< lora_alpha
  double dropout = 0;     ///< lora_dropout, of the adapter's input
  /// Names of projections, as `q_proj` or `layers.0.self_attn.q_proj`: each matches all whose path is it or ends in a
  /// dot and it. "all-linear" alone: every projection but lm_head.
  std::vector<std::string> target_modules = {"all-linear"};
  std::string target_regex = {};  ///< not empty: instead, an ECMAScript expression that a projection's path must match
  /// What the paths of modules end in that are trained whole, in fp32: the embedding, heads, norms, routers. As in
  /// PEFT, `norm` is every norm.
  std::vector<std::string> modules_to_save = {};
  /// PEFT's ensure_weight_tying: an embedding in modules_to_save that is the head too stays so, as it always does here.
  /// PEFT itself trains it apart from the head without this.
  bool ties_head = false;
  bool rank_stabilized = false;  ///< use_rslora: scaling is alpha / sqrt(rank) instead of alpha / rank
  bool dora = false;             ///< use_dora: the length of each row is trained beside its direction
  LoraInit init = LoraInit::Kaiming;
  /// For a saved adapter: names in target_modules that match nothing are ignored, as in PEFT.
  bool may_name_others = false;

  LoraPatterns patterns = {};

  double scaling() const { return alpha / (rank_stabilized ? std::sqrt(static_cast<double>(rank)) : rank); }
};

}  // namespace sealift::trainer
