// SPDX-License-Identifier: Apache-2.0
// The bodies of steady_buffers.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/flat/steady_buffers.hpp>

#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <cstring>

namespace sealift::train {

namespace detail {

SEALIFT_BODY at::DataPtr SteadyBuffers::take(std::size_t bytes, at::Device device) {
  if (bytes == 0) return {nullptr, device};
  const auto stream =
      device.is_cpu() ? c10::StreamId{0} : c10::impl::VirtualGuardImpl(device.type()).getStream(device).id();
  const std::lock_guard lock(guard_);
  auto found = std::find_if(buffers_.begin(), buffers_.end(), [&](const Buffer& buffer) {
    return buffer.free && buffer.bytes == bytes && buffer.memory.device() == device && buffer.stream == stream;
  });
  if (found == buffers_.end()) {
    const c10::DeviceGuard on(device);
    auto memory = c10::GetAllocator(device.type())->allocate(bytes);
    found = buffers_.insert(buffers_.end(), Buffer{bytes, stream, made_++, std::move(memory)});
  }
  found->free = false;
  auto* data = found->memory.get();
  if (observer_) observer_(data, bytes);
  return {data, new Lease{shared_from_this(), found}, &give_back, device};
}

SEALIFT_BODY std::vector<FlatMemory> SteadyBuffers::all() const {
  const std::lock_guard lock(guard_);
  std::vector<FlatMemory> result;
  for (const auto& each : buffers_) result.push_back({each.memory.get(), each.bytes, each.memory.device()});
  return result;
}

SEALIFT_BODY std::uint64_t SteadyBuffers::made() const {
  const std::lock_guard lock(guard_);
  return made_;
}

SEALIFT_BODY void SteadyBuffers::release(std::uint64_t made) {
  const std::lock_guard lock(guard_);
  std::erase_if(buffers_, [&](const Buffer& buffer) { return buffer.free && buffer.number >= made; });
}

SEALIFT_BODY void SteadyBuffers::observe(std::function<void(const void* data, std::size_t bytes)> observer) {
  const std::lock_guard lock(guard_);
  observer_ = std::move(observer);
}

SEALIFT_BODY std::atomic<bool>& SteadyBuffers::poison() {
  static std::atomic<bool> on = false;
  return on;
}

SEALIFT_BODY void SteadyBuffers::give_back(void* context) {
  const std::unique_ptr<Lease> lease(static_cast<Lease*>(context));
  auto& buffer = *lease->buffer;
  const std::lock_guard lock(lease->owner->guard_);
  if (poison() && buffer.memory.device().is_cpu()) std::memset(buffer.memory.get(), 0xff, buffer.bytes);
  buffer.free = true;
}

}  // namespace detail

}  // namespace sealift::train
