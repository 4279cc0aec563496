// SPDX-License-Identifier: Apache-2.0
// The bodies of replay_state.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/step/replay_state.hpp>

#include <ATen/autocast_mode.h>

namespace sealift::train {

namespace detail {

SEALIFT_BODY RandomState::RandomState() {
  remember(at::globalContext().defaultGenerator(at::kCPU));
  const auto devices = at::hasCUDA() ? torch::cuda::device_count() : c10::DeviceIndex{0};
  for (c10::DeviceIndex i = 0; i < devices; ++i) {
    remember(at::globalContext().defaultGenerator({at::kCUDA, i}));
  }
}

SEALIFT_BODY void RandomState::keep_drawn() {
  std::erase_if(states_, [](const auto& item) { return now(item.first).equal(item.second); });
}

SEALIFT_BODY RandomState RandomState::current() const {
  RandomState result{Empty{}};
  for (const auto& [generator, state] : states_) result.remember(generator);
  return result;
}

SEALIFT_BODY void RandomState::restore() const {
  for (auto [generator, state] : states_) {
    const std::lock_guard lock(generator.mutex());
    generator.set_state(state);
  }
}

SEALIFT_BODY at::Tensor RandomState::now(at::Generator generator) {
  const std::lock_guard lock(generator.mutex());
  return generator.get_state();
}

SEALIFT_BODY AutocastState AutocastState::current() {
  AutocastState state;
  for (std::size_t i = 0; i < kDevices.size(); ++i) {
    state.enabled[i] = at::autocast::is_autocast_enabled(kDevices[i]);
    state.dtype[i] = at::autocast::get_autocast_dtype(kDevices[i]);
  }
  state.cache = at::autocast::is_autocast_cache_enabled();
  return state;
}

SEALIFT_BODY AutocastState AutocastState::without_cache() const {
  auto state = *this;
  state.cache = false;
  return state;
}

SEALIFT_BODY void AutocastState::set() const {
  for (std::size_t i = 0; i < kDevices.size(); ++i) {
    at::autocast::set_autocast_enabled(kDevices[i], enabled[i]);
    at::autocast::set_autocast_dtype(kDevices[i], dtype[i]);
  }
  at::autocast::set_autocast_cache_enabled(cache);
}

SEALIFT_BODY AutocastGuard::~AutocastGuard() {
  // A cast kept from here would be stale after the optimizer's step, and holds this run's graph.
  if (cached_) at::autocast::clear_cache();
  before_.set();
}

}  // namespace detail

}  // namespace sealift::train
