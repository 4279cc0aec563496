// SPDX-License-Identifier: Apache-2.0
// The bodies of nccl.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/comm/engines.hpp>

#include <map>

namespace sealift::train {

SEALIFT_BODY void DeviceEngines::add(const c10::intrusive_ptr<c10d::Backend>& engine) {
  const std::lock_guard lock(mutex_);
  engines_.emplace_back(engine);
}

SEALIFT_BODY void DeviceEngines::abort() {
  std::vector<std::thread> aborts;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& each : engines_) {
      if (auto engine = each.lock()) aborts.emplace_back([engine] { quietly([&] { engine->abort(); }); });
    }
    engines_.clear();
  }
  for (auto& each : aborts) each.join();
}

namespace detail {

/// What this program has registered.
struct EngineRegistry {
  std::mutex mutex;
  std::map<at::DeviceType, RegisteredEngine> engines;

  static SEALIFT_BODY EngineRegistry& of_program();
};

SEALIFT_BODY EngineRegistry& EngineRegistry::of_program() {
  static EngineRegistry registry;
  return registry;
}

}  // namespace detail

SEALIFT_BODY void register_engine(at::DeviceType type, std::string name, EngineFactory factory) {
  auto& registry = detail::EngineRegistry::of_program();
  const std::lock_guard lock(registry.mutex);
  registry.engines.erase(type);
  if (factory) registry.engines.emplace(type, RegisteredEngine{std::move(name), std::move(factory)});
}

SEALIFT_BODY std::optional<RegisteredEngine> registered_engine(at::DeviceType type) {
  auto& registry = detail::EngineRegistry::of_program();
  const std::lock_guard lock(registry.mutex);
  const auto found = registry.engines.find(type);
  return found == registry.engines.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace sealift::train
