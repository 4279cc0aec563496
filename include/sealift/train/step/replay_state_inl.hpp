// SPDX-License-Identifier: Apache-2.0
// The bodies of replay_state.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/step/replay_state.hpp>

#include <ATen/DeviceAccelerator.h>
#include <ATen/autocast_mode.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace sealift::train {

namespace detail {

SEALIFT_BODY RandomState::RandomState() {
  remember(at::globalContext().defaultGenerator(at::kCPU));
  const auto accelerator = at::getAccelerator();
  if (!accelerator) return;
  const auto devices = c10::impl::VirtualGuardImpl(*accelerator).deviceCount();
  for (c10::DeviceIndex i = 0; i < devices; ++i) remember(at::globalContext().defaultGenerator({*accelerator, i}));
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

SEALIFT_BODY std::vector<at::DeviceType> AutocastState::devices() {
  std::vector<at::DeviceType> kinds{at::kCPU};
  if (const auto accelerator = at::getAccelerator()) kinds.push_back(*accelerator);
  return kinds;
}

SEALIFT_BODY AutocastState AutocastState::current() {
  AutocastState state;
  const auto kinds = devices();
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    state.enabled[i] = at::autocast::is_autocast_enabled(kinds[i]);
    state.dtype[i] = at::autocast::get_autocast_dtype(kinds[i]);
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
  const auto kinds = devices();
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    at::autocast::set_autocast_enabled(kinds[i], enabled[i]);
    at::autocast::set_autocast_dtype(kinds[i], dtype[i]);
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
