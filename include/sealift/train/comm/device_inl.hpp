// SPDX-License-Identifier: Apache-2.0
// The bodies of device.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/comm/device.hpp>

namespace sealift::train {

SEALIFT_BODY bool is_accelerator(at::Device device) {
  return !device.is_cpu() && !device.is_meta();
}

SEALIFT_BODY void use_device(at::Device device) {
  if (!device.is_cpu()) c10::impl::VirtualGuardImpl(device.type()).setDevice(device);
}

SEALIFT_BODY at::Device device_of_values(at::Device device) {
  return device.is_meta() ? at::Device(at::kCPU) : device;
}

SEALIFT_BODY at::Tensor values_on_host(const at::Tensor& tensor) {
  return tensor.is_meta() ? at::zeros(tensor.sizes(), tensor.options().device(at::kCPU)) : tensor.cpu();
}

SEALIFT_BODY std::optional<c10::Event> mark_stream(at::Device device) {
  if (device.is_cpu()) return {};
  std::optional<c10::Event> event(std::in_place, device.type());
  event->record(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
  return event;
}

}  // namespace sealift::train
