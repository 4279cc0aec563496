// SPDX-License-Identifier: Apache-2.0
// The bodies of unit_choice.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/unit_choice.hpp>

#include <algorithm>
#include <typeindex>

namespace sealift::train {

namespace detail {

SEALIFT_BODY std::string join(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "." + name;
}

SEALIFT_BODY bool contains(const std::string& path, const std::string& other) {
  return other.starts_with(path + ".");
}

/// Finds all candidates, in the order of the model; a module comes before those within it.
SEALIFT_BODY void find_places(const torch::nn::Module& module, const std::string& path, std::vector<Place>& found) {
  for (const auto& item : module.named_children()) {
    auto* slot = dynamic_cast<UnitSlot*>(item.value().get());
    const bool known = std::any_of(found.begin(), found.end(), [&](const auto& place) { return place.slot == slot; });
    if (slot && !known) found.push_back({{join(path, item.key()), *item.value()}, slot});
    find_places(*item.value(), join(path, item.key()), found);
  }
}

SEALIFT_BODY void mark_blocks(std::vector<Place>& places) {
  const auto type = [](const Place& place) { return std::type_index(typeid(place.candidate.module)); };
  std::map<std::type_index, int> count;
  for (const auto& place : places) ++count[type(place)];
  const bool any = std::any_of(count.begin(), count.end(), [](const auto& item) { return item.second > 1; });
  const Candidate* outer = nullptr;  // the last block that no other contains
  for (auto& place : places) {
    auto& each = place.candidate;
    each.is_block = !any || count[type(place)] > 1;
    if (!each.is_block || (outer && contains(outer->path, each.path))) continue;
    each.block = outer ? *outer->block + 1 : 0;
    outer = &each;
  }
}

/// Adds the parameters of `module` to `found` that are neither ignored nor in one of `units` within it.
SEALIFT_BODY void find_rest(const torch::nn::Module& module, const std::set<const torch::nn::Module*>& units,
                            const std::set<at::TensorImpl*>& ignored, std::map<at::TensorImpl*, std::int64_t>& found) {
  for (const auto& parameter : module.parameters(/*recurse=*/false)) {
    auto* impl = parameter.unsafeGetTensorImpl();
    if (!ignored.contains(impl)) found[impl] = parameter.numel();
  }
  for (const auto& child : module.children()) {
    if (!units.contains(child.get())) find_rest(*child, units, ignored, found);
  }
}

SEALIFT_BODY void ask(std::vector<Place>& places, const Wrap& wrap, const std::set<at::TensorImpl*>& ignored) {
  TORCH_CHECK(wrap, "Policy::wrap is an empty function; root_only() chooses no units");
  std::set<const torch::nn::Module*> units;
  std::map<std::string, bool> patterns;
  for (auto place = places.rbegin(); place != places.rend(); ++place) {
    auto& candidate = place->candidate;
    std::map<at::TensorImpl*, std::int64_t> rest;
    find_rest(candidate.module, units, ignored, rest);
    for (const auto& [parameter, numel] : rest) candidate.numel += numel;
    candidate.patterns = &patterns;
    auto choice = wrap(candidate);
    candidate.patterns = nullptr;
    if (!choice.options || rest.empty()) continue;
    place->options = std::move(choice.options);
    units.insert(&candidate.module);
  }
  for (const auto& [pattern, matched] : patterns) {
    TORCH_CHECK(matched, "'", pattern, "' matches no module that is held in Shardable, or only modules that were ",
                "chosen before it was asked; possible units are: ", [&] {
                  std::string paths;
                  for (const auto& place : places) paths += (paths.empty() ? "" : ", ") + place.candidate.path;
                  return paths.empty() ? std::string("none") : paths;
                }());
  }
}

SEALIFT_BODY std::vector<Place> choose_units(const torch::nn::Module& model, const Policy& policy,
                                             const std::set<at::TensorImpl*>& ignored) {
  std::vector<Place> places;
  find_places(model, "", places);
  mark_blocks(places);
  ask(places, policy.wrap, ignored);
  return places;
}

}  // namespace detail

}  // namespace sealift::train
