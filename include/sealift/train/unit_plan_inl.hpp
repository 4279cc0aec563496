// SPDX-License-Identifier: Apache-2.0
// The bodies of unit_plan.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/unit_plan.hpp>

namespace sealift::train {

SEALIFT_BODY std::int64_t UnitPlan::numel() const {
  std::int64_t sum = 0;
  for (const auto& parameter : parameters) sum += parameter.tensor.numel();
  return sum;
}

namespace detail {

/// Begins the chosen units, the root's first, and says which modules they are.
SEALIFT_BODY std::vector<UnitPlan> begin_units(torch::nn::Module& model, const std::vector<Place>& places,
                                               const Policy& policy,
                                               std::map<const torch::nn::Module*, std::size_t>& unit_of) {
  const auto options_of = [&](const UnitOptions& options) {
    const bool reshard = options.reshard_after_forward.value_or(policy.reshard_after_forward);
    return Unit::Options{.reshard_after_forward = reshard,
                         .reshard_group = reshard ? policy.reshard_group : 0,
                         .precision = options.precision.value_or(policy.precision)};
  };
  std::vector<UnitPlan> plans{{.slots = {dynamic_cast<UnitSlot*>(&model)}, .options = options_of({})}};
  std::map<std::string, std::vector<const Place*>> sharing;
  for (const auto& place : places) {
    if (!place.options) continue;
    const auto& path = place.candidate.path;
    auto& partners = sharing[place.options->shared.empty() ? "only " + path : "with " + place.options->shared];
    if (partners.empty()) {
      unit_of[&place.candidate.module] = plans.size();
      plans.push_back({.path = path,
                       .slots = {place.slot},
                       .replicate = place.options->replicate,
                       .replicate_trained = place.options->replicate_trained,
                       .options = options_of(*place.options)});
    } else {
      TORCH_CHECK(*place.options == *partners.front()->options, "modules '", partners.front()->candidate.path,
                  "' and '", path, "' share unit '", place.options->shared,
                  "' but have other options; give both the same");
      const auto unit = unit_of[&place.candidate.module] = unit_of[&partners.front()->candidate.module];
      // Within one of them it runs while the unit is in use, so it must not free the unit.
      if (std::none_of(partners.begin(), partners.end(),
                       [&](const auto* partner) { return contains(partner->candidate.path, path); })) {
        plans[unit].slots.push_back(place.slot);
      }
    }
    partners.push_back(&place);
  }
  return plans;
}

/// The parameters that `policy` ignores; throws when one of its patterns matches none.
SEALIFT_BODY std::set<at::TensorImpl*> find_ignored(const torch::nn::Module& model, const Policy& policy) {
  std::set<at::TensorImpl*> ignored;
  for (const auto& pattern : policy.ignored_parameters) {
    bool matched = false;
    for (const auto& item : model.named_parameters()) {
      if (fnmatch(pattern.c_str(), item.key().c_str(), 0) != 0) continue;
      matched = true;
      ignored.insert(item.value().unsafeGetTensorImpl());
    }
    TORCH_CHECK(matched, "ignored_parameters has '", pattern, "', which matches no parameter of the model");
  }
  return ignored;
}

SEALIFT_BODY void Distribution::add(const torch::nn::Module& module, const std::string& path, std::size_t unit) {
  for (const auto& item : module.named_parameters(/*recurse=*/false)) {
    const auto name = join(path, item.key());
    auto* impl = item.value().unsafeGetTensorImpl();
    if (ignored.contains(impl)) continue;
    const auto [first, is_new] = seen.try_emplace(impl, name, unit);
    if (is_new) plans[unit].parameters.push_back({name, item.value()});
    const auto& [first_name, first_unit] = first->second;
    TORCH_CHECK(first_unit == unit, "parameters '", first_name, "' and '", name, "' are tied but lie in units '",
                plans[first_unit].path, "' and '", plans[unit].path,
                "'; hold tied parameters in one unit: the root, or one that both modules share");
  }
  for (const auto& item : module.named_buffers(/*recurse=*/false)) plans[unit].buffers.push_back(item.value());
  for (const auto& item : module.named_children()) {
    const auto found = unit_of.find(item.value().get());
    add(*item.value(), join(path, item.key()), found == unit_of.end() ? unit : found->second);
  }
}

/// Asks `store` what is kept of each parameter.
SEALIFT_BODY void choose_storage(std::vector<UnitPlan>& plans, const StorageChoice& store) {
  for (auto& plan : plans) {
    for (const auto& [name, tensor] : plan.parameters) {
      const auto stored = store(name, tensor);
      TORCH_CHECK(stored == StoredAs::Plain || (!tensor.requires_grad() && tensor.is_floating_point()), "parameter '",
                  name, "' of ", tensor.scalar_type(), tensor.requires_grad() ? ", which is trained," : "",
                  " cannot be stored encoded; let Policy::store choose frozen floating ones");
      plan.stored.push_back(stored);
    }
  }
}

}  // namespace detail

SEALIFT_BODY std::vector<UnitPlan> plan_units(torch::nn::Module& model, const Policy& policy) {
  detail::Distribution distribution{.ignored = detail::find_ignored(model, policy)};
  const auto places = detail::choose_units(model, policy, distribution.ignored);
  distribution.plans = detail::begin_units(model, places, policy, distribution.unit_of);
  distribution.add(model, "", 0);
  if (policy.store) detail::choose_storage(distribution.plans, policy.store);
  return std::move(distribution.plans);
}

SEALIFT_BODY std::vector<std::string> unit_warnings(const std::vector<UnitPlan>& plans) {
  constexpr std::int64_t kSmall = 1 << 18;  // elements: 1 MiB of fp32, where latency and bandwidth break even
  std::vector<std::string> warnings;
  std::int64_t total = 0;
  for (const auto& plan : plans) total += plan.numel();
  for (std::size_t i = 1; i < plans.size(); ++i) {
    if (plans[i].numel() >= kSmall || plans[i].replicate) continue;
    warnings.push_back("unit '" + plans[i].path + "' holds only " + std::to_string(plans[i].numel()) +
                       " elements, so its collectives are mostly latency; let several blocks share a unit " +
                       "(by_block_group) or replicate it");
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
