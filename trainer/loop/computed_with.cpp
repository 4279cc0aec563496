// SPDX-License-Identifier: Apache-2.0
// See computed_with.hpp.
#include "trainer/loop/computed_with.hpp"

#include "trainer/kernels/launcher.hpp"

#include <ATen/Parallel.h>
#include <ATen/Version.h>

namespace sealift::trainer {
namespace {

constexpr const char* kComputedWith = "computed_with";

nlohmann::json means_of(const Place& place) {
  const auto& device = place.device.description;
  const auto* name = device.contains("name") ? "name" : "type";
  nlohmann::json means{{"ranks", place.world_size},
                       {"mesh", c10::str(place.mesh.replicate, "x", place.mesh.shard)},
                       {"own_kernels", kernels::launcher_of(place.device.device) != nullptr},
                       {"device", device.contains(name) ? nlohmann::json(device[name]) : nlohmann::json()}};
  if (!place.device.device.is_cpu()) return means;
  means["threads"] = at::get_num_threads();
  means["vector_units"] = vector_units();
  return means;
}

std::string shown(const nlohmann::json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

}  // namespace

std::string vector_units() {
  return at::get_cpu_capability();
}

std::pair<std::string, std::string> computed_with(const Place& place) {
  return {kComputedWith, means_of(place).dump()};
}

std::string other_means(const std::map<std::string, std::string>& then, const Place& place) {
  const auto note = then.find(kComputedWith);
  const auto before = note == then.end() ? nlohmann::json() : nlohmann::json::parse(note->second, nullptr, false);
  if (!before.is_object()) return {};
  std::string text;
  const auto now = means_of(place);
  for (const auto& [name, value] : now.items()) {
    const auto was = before.find(name);
    if (was == before.end() || *was == value) continue;
    text += (text.empty() ? "" : ", ") + name + " " + shown(value) + " (before: " + shown(*was) + ")";
  }
  if (text.empty()) return {};
  return "note: this run goes on with " + text + ": it agrees with one that never stopped to rounding, not bit for bit";
}

}  // namespace sealift::trainer
