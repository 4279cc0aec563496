// SPDX-License-Identifier: Apache-2.0
// Which modules become units: one function from a module to an answer, and makers of the usual ones.
// `Policy::wrap` holds one; `plan_units` asks it once for each module that is held in `Shardable`, and carries it out.
// A function, not a list of strategies: what a maker cannot say is three lines of the user's own (FSDP1's
// CustomPolicy).
#pragma once

#include <sealift/train/bodies.hpp>
#include <sealift/train/precision.hpp>

#include <functional>
#include <map>
#include <string>

namespace sealift::train {

/// A module that may become a unit: below the root and held in `Shardable`. One registered twice has its first path.
struct Candidate {
  std::string path;  ///< like `layers.0.norm`
  const torch::nn::Module& module;
  std::int64_t numel = 0;  ///< of its parameters, without ignored ones and without a unit's within it
  bool is_block = false;   ///< of a type that the model holds more than once; when it repeats none, any candidate
  std::optional<std::int64_t> block = {};           ///< of a block that no other contains: how many such come before it
  std::map<std::string, bool>* patterns = nullptr;  ///< those asked for, and whether one matched; `plan_units` sets it

  /// Whether the path is like `pattern`, as in a shell: `*` stands for any run of characters. `plan_units` refuses a
  /// pattern that was asked for and matched no candidate, since it is likelier misspelt than meant.
  bool matches(const std::string& pattern) const;
};

/// How one unit differs from what the policy says of all.
struct UnitOptions {
  bool replicate = false;  ///< kept whole on every rank, gradients all-reduced, as under ddp; for small embeddings
  bool replicate_trained = false;  ///< the same for its trainable parameters alone; for adapters of a frozen unit
  std::optional<bool> reshard_after_forward = {};  ///< unset: the policy's
  std::optional<MixedPrecision> precision = {};    ///< unset: the policy's
  /// Modules with the same name here are one unit: gathered with the first that runs, freed after the last in the order
  /// of the model, as a list of modules for FSDP2's fully_shard is. Empty: a unit of its own.
  std::string shared = {};

  bool operator==(const UnitOptions&) const = default;
};

/// The answer for one candidate: `false` leaves it to the unit that contains it, `true` makes it a unit as the policy
/// says, options make it one that differs.
struct UnitChoice {
  UnitChoice(bool is_unit);
  UnitChoice(UnitOptions options) : options(std::move(options)) {}

  std::optional<UnitOptions> options;
};

/// Chooses the units. Asked once for each candidate, for those within a module before the module itself; the answer
/// must be the same on all ranks. A lambda will do:
///   policy.wrap = [](const Candidate& each) { return each.is_block && each.path != "layers.0"; };
using Wrap = std::function<UnitChoice(const Candidate&)>;

/// Every block, with `options`.
Wrap by_block(UnitOptions options = {});

/// `blocks` consecutive blocks share a unit; the last may hold fewer. Blocks within blocks stay with those.
Wrap by_block_group(std::int64_t blocks);

/// Every `k`-th block, starting with the first; the blocks between belong to the root.
Wrap one_in(std::int64_t k);

/// Every candidate of at least `min_numel` elements that no unit within it holds. The default is PyTorch's
/// size_based_auto_wrap_policy's.
Wrap by_size(std::int64_t min_numel = 100'000'000);

/// Every candidate whose path matches `pattern`, which must match one; with `options` of its own.
Wrap by_path(std::string pattern, UnitOptions options = {});

/// None: the whole model is gathered and reduced at once.
Wrap root_only();

/// What the first of these chooses that does: `either(by_path("tokens", {.replicate = true}), by_block())`.
template <class... Rest>
Wrap either(Wrap first, Wrap second, Rest... rest) {
  if constexpr (sizeof...(rest) > 0) {
    return either(std::move(first), either(std::move(second), std::move(rest)...));
  } else {
    return [first = std::move(first), second = std::move(second)](const Candidate& each) {
      auto choice = first(each);
      return choice.options ? choice : second(each);
    };
  }
}

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/wrap_inl.hpp>
#endif
