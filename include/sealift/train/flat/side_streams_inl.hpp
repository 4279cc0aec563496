// SPDX-License-Identifier: Apache-2.0
// The bodies of side_streams.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/flat/side_streams.hpp>

#include <c10/core/impl/VirtualGuardImpl.h>

namespace sealift::train {

SEALIFT_BODY SideStreams::SideStreams(at::Device device) : device_(device) {
  if (device.is_cpu()) return;
  const c10::impl::VirtualGuardImpl streams(device.type());
  in_ = streams.getStreamFromGlobalPool(device);
  out_ = streams.getStreamFromGlobalPool(device);
}

SEALIFT_BODY void SideStreams::run(Lane lane, const std::function<void()>& work) {
  if (device_.is_cpu()) return work();
  const c10::StreamGuard guard(stream(lane));
  work();
}

SEALIFT_BODY SideStreams::Mark SideStreams::mark(Lane lane) {
  if (device_.is_cpu()) return nullptr;
  auto event = std::make_shared<c10::Event>(device_.type());
  event->record(stream(lane));
  return event;
}

SEALIFT_BODY void SideStreams::wait(Lane lane, const Mark& mark) {
  if (mark) std::static_pointer_cast<c10::Event>(mark)->block(stream(lane));
}

SEALIFT_BODY void SideStreams::finish(const Mark& mark) {
  if (mark) std::static_pointer_cast<c10::Event>(mark)->synchronize();
}

SEALIFT_BODY c10::Stream SideStreams::stream(Lane lane) const {
  if (lane == Current) return c10::impl::VirtualGuardImpl(device_.type()).getStream(device_);
  return lane == In ? *in_ : *out_;
}

}  // namespace sealift::train
