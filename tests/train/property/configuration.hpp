// SPDX-License-Identifier: Apache-2.0
// A configuration of the property test: one choice for each feature of the engine, drawn from a seed.
// First in the flow: `model` and `training` read it, `shrink` makes it smaller, a failure prints it as one line.
// Features are a table of names and values, simplest first, so that drawing, printing, reading and shrinking are each
// one loop, and a new feature is a row.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace sealift::test::property {

enum Feature : std::size_t {
  kMethod,
  kRanks,
  kShard,
  kWrap,
  kBlocks,
  kMinNumel,
  kMicroBatches,
  kSchedule,
  kReduceEvery,
  kDefer,
  kKeep,
  kForwardPrefetch,
  kBackwardPrefetch,
  kPrefetchLists,
  kReshard,
  kReshardGroup,
  kOverride,
  kOffload,
  kPrecision,
  kAutocast,
  kRecompute,
  kFrozen,
  kNested,
  kRepeat,
  kOrder,
  kUnused,
  kFindUnused,
  kForwards,
  kSide,
  kInPlace,
  kEval,
  kEvalAt,
  kCutShort,
  kException,
  kOptimizer,
  kZeroGrad,
  kZeroGradOf,
  kClip,
  kBuffers,
  kTied,
  kRegularizer,
  kDivideBy,
  kBuckets,
  kStart,
  kSteps,
  kData,
  kAddresses,
  kFeatures
};

struct FeatureRow {
  const char* name;
  int percent;                      ///< how often something else than the simplest value is drawn
  std::vector<const char*> values;  ///< the simplest first
};

/// In the order of `Feature`; shrinking tries rows from the first to the last, and values from the left.
inline const std::array<FeatureRow, kFeatures>& table() {
  static const std::array<FeatureRow, kFeatures> rows{{
      {"method", 60, {"fsdp", "ddp", "hsdp"}},
      {"ranks", 65, {"2", "1", "3", "4"}},
      {"shard", 75, {"1", "2", "4", "3"}},
      {"wrap",
       70,
       {"by_block", "by_block_and_size", "by_block_group", "by_block_group_and_size", "one_in_k", "size_based",
        "root_only"}},
      {"blocks", 70, {"1", "2", "3"}},
      {"min_numel", 60, {"0", "40"}},
      {"micro_batches", 65, {"1", "2", "3"}},
      {"schedule",
       75,
       {"plain", "set_micro_batch", "sync_last", "sync_and_reshard_last", "all_reduce_last", "interleaved"}},
      {"reduce_every", 40, {"no", "yes"}},
      {"defer_all_reduce", 40, {"yes", "no"}},
      {"keep_gathered", 60, {"auto", "always", "never"}},
      {"forward_prefetch", 50, {"1", "0", "2", "3"}},
      {"backward_prefetch", 50, {"1", "0", "2", "3"}},
      {"prefetch_lists", 10, {"no", "yes"}},
      {"reshard_after_forward", 30, {"yes", "no"}},
      {"reshard_group", 25, {"0", "2"}},
      {"override", 35, {"none", "replicate", "keep_whole", "replicate_inner", "bf16"}},
      {"offload", 25, {"none", "parameters", "gradients", "parameters+gradients", "all"}},
      {"precision", 35, {"fp32", "bf16_fp32", "bf16_bf16", "fp16_reduce", "bf16_output"}},
      {"autocast", 10, {"no", "yes"}},
      {"recompute", 45, {"none", "inside", "around", "lambda"}},
      {"frozen", 45, {"none", "embedding", "weights", "block", "head", "all_but_head", "all_but_adapters"}},
      {"nested", 30, {"no", "yes"}},
      {"repeat", 25, {"no", "yes"}},
      {"order", 25, {"same", "changes"}},
      {"unused", 35, {"none", "spare_block", "by_step", "by_micro_batch", "by_rank"}},
      {"find_unused", 15, {"no", "yes"}},
      {"forwards", 15, {"1", "2"}},
      {"side", 35, {"none", "used", "unused"}},
      {"in_place", 4, {"no", "yes"}},
      {"eval",
       50,
       {"none", "no_grad", "gathered", "recorded", "recorded_kept", "block", "block_recorded", "read", "method"}},
      {"eval_at", 75, {"after_step", "before_forward", "between_micro_batches", "before_step"}},
      {"cut_short", 30, {"no", "yes"}},
      {"exception", 12, {"none", "forward", "backward"}},
      {"optimizer", 65, {"sgd", "adamw", "fused_adamw"}},
      {"zero_grad", 40, {"to_none", "to_zero"}},
      {"zero_grad_of", 30, {"optimizer", "model"}},
      {"clip", 35, {"no", "yes"}},
      {"buffers", 35, {"no", "yes"}},
      {"tied", 30, {"no", "yes"}},
      {"regularizer", 25, {"no", "yes"}},
      {"divide_by", 15, {"world", "other"}},
      {"buckets", 50, {"default", "tiny", "small"}},
      {"start", 60, {"same", "rank_0"}},
      {"steps", 30, {"3", "2", "5"}},
      {"data", 60, {"0", "1", "2", "3"}},
      {"addresses", 20, {"any", "stable"}},
  }};
  return rows;
}

struct Configuration {
  std::array<std::size_t, kFeatures> choice{};  ///< per feature, the number of its value

  std::string text(Feature feature) const { return table()[feature].values[choice[feature]]; }
  std::int64_t number(Feature feature) const { return std::stoll(text(feature)); }
  bool is(Feature feature, const std::string& value) const { return text(feature) == value; }
  bool chosen(Feature feature) const { return choice[feature] != 0; }
  bool operator==(const Configuration&) const = default;

  /// Ranks that share one copy of the model.
  std::int64_t shards() const { return is(kMethod, "ddp") ? 1 : is(kMethod, "fsdp") ? number(kRanks) : number(kShard); }

  /// The policy must refuse it, on every rank.
  bool to_be_refused() const {
    if (number(kRanks) % shards() != 0) return true;
    const auto group = number(kReshardGroup);
    return group > 0 && (group >= shards() || shards() % group != 0);
  }

  /// May end in an error on every rank that names the remedy, where one process goes on: what cannot be given must at
  /// least never be wrong in silence.
  bool may_be_refused() const {
    const bool no_gradient = chosen(kZeroGrad) && (chosen(kZeroGradOf) || chosen(kCutShort));  // to be set to zero
    return chosen(kInPlace) || no_gradient;
  }

  /// What differs from the simplest configuration, as `read` takes it.
  std::string line() const {
    std::string text;
    for (std::size_t i = 0; i < kFeatures; ++i) {
      if (choice[i] == 0) continue;
      text += (text.empty() ? "" : " ") + std::string(table()[i].name) + "=" + table()[i].values[choice[i]];
    }
    return text.empty() ? "simplest" : text;
  }
};

/// The configuration that `line` describes; throws on a name or value that is not in the table.
inline Configuration read(const std::string& line) {
  Configuration configuration;
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    if (word == "simplest") continue;
    const auto equals = word.find('=');
    const auto name = word.substr(0, equals), value = equals == word.npos ? "" : word.substr(equals + 1);
    bool found = false;
    for (std::size_t i = 0; i < kFeatures; ++i) {
      if (table()[i].name != name) continue;
      for (std::size_t j = 0; j < table()[i].values.size() && !found; ++j) {
        if (table()[i].values[j] == value) configuration.choice[i] = j, found = true;
      }
    }
    if (!found) throw std::runtime_error("SEALIFT_PROPERTY_CASE: there is no '" + word + "'");
  }
  return configuration;
}

/// The same with every choice that would change nothing set to the simplest one, so that a line says what matters and
/// a count of what was drawn does not lie.
inline Configuration without_idle_choices(Configuration c) {
  const auto drop = [&](Feature feature, bool idle) {
    if (idle) c.choice[feature] = 0;
  };
  drop(kShard, !c.is(kMethod, "hsdp"));
  const bool counts =
      c.is(kWrap, "by_block_group") || c.is(kWrap, "by_block_group_and_size") || c.is(kWrap, "one_in_k");
  const bool sizes =
      c.is(kWrap, "by_block_and_size") || c.is(kWrap, "by_block_group_and_size") || c.is(kWrap, "size_based");
  drop(kBlocks, !counts);
  drop(kMinNumel, !sizes);
  const bool one = c.number(kMicroBatches) == 1;
  drop(kSchedule, one && !c.is(kSchedule, "set_micro_batch"));
  drop(kReduceEvery, one || !c.is(kSchedule, "set_micro_batch"));
  drop(kDefer, !c.chosen(kReduceEvery));
  drop(kKeep, !c.is(kSchedule, "set_micro_batch"));
  drop(kCutShort, one);
  drop(kEvalAt, !c.chosen(kEval) || (one && c.is(kEvalAt, "between_micro_batches")));
  drop(kReshardGroup, c.chosen(kReshard));
  drop(kNested, c.is(kOverride, "replicate_inner") ? false : !c.chosen(kNested));
  if (c.is(kOverride, "replicate_inner")) c.choice[kNested] = 1;
  // Whole blocks that only some ranks call would be collectives that only some ranks make; parameters may differ, if
  // the policy says so.
  if (c.is(kUnused, "by_rank")) c.choice[kFindUnused] = 1;
  drop(kUnused, c.is(kUnused, "by_rank") && c.number(kRanks) == 1);
  // A recomputed body may not change its inputs, nor may a sum that backward reads be changed.
  drop(kInPlace, c.chosen(kRecompute) || c.chosen(kSide) || c.chosen(kAutocast) || c.chosen(kPrecision) ||
                     c.is(kOverride, "bf16"));
  drop(kAutocast, c.chosen(kPrecision) || c.is(kOverride, "bf16"));
  drop(kTied, c.is(kFrozen, "embedding") || c.is(kFrozen, "head") || c.is(kFrozen, "all_but_head"));
  drop(kRegularizer, c.is(kFrozen, "all_but_head") || c.is(kFrozen, "all_but_adapters"));
  drop(kUnused, c.is(kUnused, "by_micro_batch") && one);
  // Ranks that fail between other reductions would wait for each other's.
  drop(kException, c.is(kException, "backward") && c.is(kUnused, "by_rank"));
  return c;
}

/// Sets what `words` name (`nested`, or `eval=gathered`) to the simplest, to look past a defect that is known.
inline Configuration leave_out(Configuration c, const std::string& words) {
  std::istringstream each(words);
  for (std::string word; each >> word;) {
    for (std::size_t i = 0; i < kFeatures; ++i) {
      const std::string name = table()[i].name;
      if (word == name || word == name + "=" + table()[i].values[c.choice[i]]) c.choice[i] = 0;
    }
  }
  return without_idle_choices(c);
}

/// The `index`-th configuration of `seed`. The first ones each have a feature that is surely not at its simplest, so
/// that a short run draws all of them.
inline Configuration draw(std::uint64_t seed, std::uint64_t index) {
  std::seed_seq sequence{seed, seed >> 32, index};
  std::mt19937 random(sequence);
  const auto below = [&](std::size_t n) { return random() % n; };  // the same on every standard library
  std::vector<std::pair<std::size_t, std::size_t>> all;
  for (std::size_t i = 0; i < kFeatures; ++i) {
    for (std::size_t j = 1; j < table()[i].values.size(); ++j) all.push_back({i, j});
  }
  const auto wanted = index < all.size() ? std::optional(all[index]) : std::nullopt;
  for (int tries = 0;; ++tries) {
    if (tries == 10000) throw std::logic_error(std::string("no draw keeps a value of ") + table()[wanted->first].name);
    Configuration c;
    for (std::size_t i = 0; i < kFeatures; ++i) {
      if (below(100) < static_cast<std::size_t>(table()[i].percent))
        c.choice[i] = 1 + below(table()[i].values.size() - 1);
    }
    if (below(4) == 0) c.choice[kRanks] = 3;  // it alone makes meshes of two axes, and smaller groups
    if (wanted) c.choice[wanted->first] = wanted->second;
    c = without_idle_choices(c);
    if ((c.to_be_refused() && below(100) < 95) || (c.may_be_refused() && below(100) < 80)) continue;
    if (!wanted) return c;
    const auto feature = static_cast<Feature>(wanted->first);
    if (c.is(feature, table()[feature].values[wanted->second])) return c;
  }
}

}  // namespace sealift::test::property
