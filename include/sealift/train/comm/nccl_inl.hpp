// SPDX-License-Identifier: Apache-2.0
// The bodies of nccl.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/comm/nccl.hpp>

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

SEALIFT_BODY NcclFactory& nccl_factory() {
  static NcclFactory factory;
  return factory;
}

}  // namespace detail

}  // namespace sealift::train
