// SPDX-License-Identifier: Apache-2.0
// Which modules become units, and which parameters each unit holds: a plan, made before anything is changed.
// `parallelize` carries it out. Reads the model and the policy, writes neither.
// Units are modules that are held in `Shardable`, since only their calls can be intercepted. Parameters belong to the
// innermost unit that contains them.
#pragma once

#include <sealift/train/shardable.hpp>

#include <fnmatch.h>

#include <map>
#include <set>
#include <typeindex>

namespace sealift::train {

/// A unit before its parameters become flats.
struct UnitPlan {
  std::string path = {};  ///< empty for the root; the first module's when several share the unit
  std::vector<UnitSlot*> slots = {};
  std::vector<NamedTensor> parameters = {};
  bool replicate = false;
  Unit::Options options = {};

  std::int64_t numel() const {
    std::int64_t sum = 0;
    for (const auto& parameter : parameters) sum += parameter.tensor.numel();
    return sum;
  }
};

namespace detail {

/// A module that may become a unit: held in `Shardable`, below the root.
struct Candidate {
  std::string path;
  torch::nn::Module* module;
  UnitSlot* slot;
  bool is_block = false;   ///< of a type that the model holds more than once
  bool outermost = true;   ///< no other block contains it
  std::int64_t numel = 0;  ///< of all its parameters
};

inline std::string join(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "." + name;
}

inline bool matches(const std::string& pattern, const std::string& path) {
  return fnmatch(pattern.c_str(), path.c_str(), 0) == 0;
}

/// Finds all candidates, in the order of the model; a module comes before those within it.
inline void find_candidates(torch::nn::Module& module, const std::string& path, std::vector<Candidate>& found) {
  for (const auto& item : module.named_children()) {
    auto* child = item.value().get();
    auto* slot = dynamic_cast<UnitSlot*>(child);
    const bool known = std::any_of(found.begin(), found.end(), [&](const auto& other) { return other.slot == slot; });
    if (slot && !known) {
      found.push_back({join(path, item.key()), child, slot});
      for (const auto& parameter : child->parameters()) found.back().numel += parameter.numel();
    }
    find_candidates(*child, join(path, item.key()), found);
  }
}

inline void mark_blocks(std::vector<Candidate>& candidates) {
  const auto type = [](const Candidate& candidate) { return std::type_index(typeid(*candidate.module)); };
  std::map<std::type_index, int> count;
  for (const auto& candidate : candidates) ++count[type(candidate)];
  const bool any = std::any_of(count.begin(), count.end(), [](const auto& item) { return item.second > 1; });
  for (auto& candidate : candidates) candidate.is_block = !any || count[type(candidate)] > 1;
  for (auto& candidate : candidates) {
    candidate.outermost = std::none_of(candidates.begin(), candidates.end(), [&](const auto& other) {
      return other.is_block && candidate.path.starts_with(other.path + ".");
    });
  }
}

/// PyTorch's default of size_based_auto_wrap_policy.
inline constexpr std::int64_t kSizeBasedMinNumel = 100'000'000;

/// For each candidate the number of the unit that it starts or joins; none if it stays in the unit that contains it.
inline std::vector<std::optional<std::size_t>> choose_units(const std::vector<Candidate>& candidates,
                                                            const Policy& policy) {
  const bool counts_blocks =
      policy.wrap == Wrap::ByBlockGroup || policy.wrap == Wrap::ByBlockGroupAndSize || policy.wrap == Wrap::OneInK;
  TORCH_CHECK(policy.blocks >= 1, "blocks is ", policy.blocks, "; a unit holds at least 1 block");
  const bool by_size = policy.wrap == Wrap::ByBlockAndSize || policy.wrap == Wrap::ByBlockGroupAndSize;
  std::vector<std::optional<std::size_t>> chosen(candidates.size());
  std::size_t units = 1;  // the root is 0
  const auto matched = [&](const Candidate& candidate) {
    return std::any_of(policy.overrides.begin(), policy.overrides.end(),
                       [&](const auto& each) { return matches(each.path, candidate.path); });
  };
  if (policy.wrap == Wrap::SizeBased) {  // from the inside out, each without the elements of units within it
    const auto least = policy.min_numel > 0 ? policy.min_numel : kSizeBasedMinNumel;
    std::vector<std::int64_t> rest;
    for (const auto& candidate : candidates) rest.push_back(candidate.numel);
    std::vector<bool> cut(candidates.size(), false);
    for (auto i = candidates.size(); i-- > 0;) {
      cut[i] = matched(candidates[i]) || rest[i] >= least;
      for (std::size_t above = 0; cut[i] && above < i; ++above) {
        if (candidates[i].path.starts_with(candidates[above].path + ".")) rest[above] -= rest[i];
      }
    }
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (cut[i]) chosen[i] = units++;
    }
    return chosen;
  }
  std::int64_t block = 0;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const auto& candidate = candidates[i];
    if (matched(candidate)) {
      chosen[i] = units++;
    } else if (policy.wrap == Wrap::RootOnly) {
      continue;
    } else if (candidate.is_block && counts_blocks) {
      if (!candidate.outermost) continue;
      const auto place = block++ % policy.blocks;
      if (place == 0) chosen[i] = units++;
      if (place > 0 && policy.wrap != Wrap::OneInK) chosen[i] = units - 1;
    } else if (candidate.is_block || (by_size && candidate.numel > 0 && candidate.numel >= policy.min_numel)) {
      chosen[i] = units++;
    }
  }
  return chosen;
}

/// The first name of each parameter, and the number of its unit.
using Seen = std::map<at::TensorImpl*, std::pair<std::string, std::size_t>>;

/// Adds the parameters of `module` and below to the innermost unit that contains them; a tied one counts once.
inline void assign_parameters(torch::nn::Module& module, const std::string& path, std::size_t unit,
                              const std::map<torch::nn::Module*, std::size_t>& unit_of, const Policy& policy,
                              Seen& seen, std::vector<UnitPlan>& plans) {
  for (const auto& item : module.named_parameters(/*recurse=*/false)) {
    const auto name = join(path, item.key());
    const auto is_ignored = [&](const std::string& pattern) { return matches(pattern, name); };
    if (!item.value().defined()) continue;
    if (std::any_of(policy.ignored_parameters.begin(), policy.ignored_parameters.end(), is_ignored)) continue;
    const auto [first, is_new] = seen.try_emplace(item.value().unsafeGetTensorImpl(), name, unit);
    if (is_new) plans[unit].parameters.push_back({name, item.value()});
    TORCH_CHECK(first->second.second == unit, "parameters '", first->second.first, "' and '", name,
                "' are tied but lie in units '", plans[first->second.second].path, "' and '", plans[unit].path,
                "'; hold tied parameters in one unit, best the root");
  }
  for (const auto& item : module.named_children()) {
    const auto found = unit_of.find(item.value().get());
    assign_parameters(*item.value(), join(path, item.key()), found == unit_of.end() ? unit : found->second, unit_of,
                      policy, seen, plans);
  }
}

}  // namespace detail

/// The units of `model`, the root's first; throws when parameters are tied across units or an override matches nothing.
inline std::vector<UnitPlan> plan_units(torch::nn::Module& model, const Policy& policy) {
  std::vector<detail::Candidate> candidates;
  detail::find_candidates(model, "", candidates);
  detail::mark_blocks(candidates);
  const auto chosen = detail::choose_units(candidates, policy);

  const Unit::Options usual{.reshard_after_forward = policy.reshard_after_forward,
                            .reshard_group = policy.reshard_after_forward ? policy.reshard_group : 0,
                            .precision = policy.precision};
  std::vector<UnitPlan> plans{{.slots = {dynamic_cast<UnitSlot*>(&model)}, .options = usual}};
  std::map<torch::nn::Module*, std::size_t> unit_of;
  std::set<const UnitOverride*> used;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (!chosen[i]) continue;
    unit_of[candidates[i].module] = *chosen[i];
    if (*chosen[i] < plans.size()) {  // joins a unit that was begun
      plans[*chosen[i]].slots.push_back(candidates[i].slot);
      continue;
    }
    plans.push_back({.path = candidates[i].path, .slots = {candidates[i].slot}, .options = usual});
    for (const auto& each : policy.overrides) {
      if (!detail::matches(each.path, candidates[i].path)) continue;
      used.insert(&each);
      auto& plan = plans.back();
      plan.replicate = each.replicate;
      if (each.reshard_after_forward) plan.options.reshard_after_forward = *each.reshard_after_forward;
      if (each.precision) plan.options.precision = *each.precision;
      break;
    }
  }
  for (const auto& each : policy.overrides) {
    TORCH_CHECK(used.contains(&each), "override '", each.path,
                "' matches no module that is held in Shardable, or only ",
                "modules that an earlier override matches; possible units are: ", [&] {
                  std::string paths;
                  for (const auto& candidate : candidates) paths += (paths.empty() ? "" : ", ") + candidate.path;
                  return paths.empty() ? std::string("none") : paths;
                }());
  }
  detail::Seen seen;
  detail::assign_parameters(model, "", 0, unit_of, policy, seen, plans);
  return plans;
}

/// Advice about `plans`: units that are too small to be worth a collective, or that hold most of the model, so that
/// nothing overlaps.
inline std::vector<std::string> unit_warnings(const std::vector<UnitPlan>& plans) {
  constexpr std::int64_t kSmall = std::int64_t{1}
                                  << 18;  // elements: 1 MiB of fp32, where latency and bandwidth break even
  std::vector<std::string> warnings;
  std::int64_t total = 0;
  for (const auto& plan : plans) total += plan.numel();
  for (std::size_t i = 1; i < plans.size(); ++i) {
    if (plans[i].numel() == 0 || plans[i].numel() >= kSmall || plans[i].replicate) continue;
    warnings.push_back("unit '" + plans[i].path + "' holds only " + std::to_string(plans[i].numel()) +
                       " elements, so its collectives are mostly latency; let several blocks share a unit " +
                       "(by_block_group with blocks) or replicate it");
  }
  for (const auto& plan : plans) {
    if (plans.size() == 1 || 2 * plan.numel() <= total) continue;
    warnings.push_back((plan.path.empty() ? std::string("the root's unit") : "unit '" + plan.path + "'") + " holds " +
                       std::to_string(plan.numel()) + " of the model's " + std::to_string(total) +
                       " elements, so little of its communication can overlap; hold its parts in Shardable");
  }
  return warnings;
}

}  // namespace sealift::train
