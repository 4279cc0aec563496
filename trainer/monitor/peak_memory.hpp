// SPDX-License-Identifier: Apache-2.0
// The most memory that this rank has used: of the host by its process, of a device by LibTorch's allocator.
// Asked by the monitor when it reports.
// What the kernel and the allocator count anyway, so that nothing has to be sampled.
#pragma once

#include <ATen/DeviceAccelerator.h>

#include <fstream>
#include <string>

namespace sealift::trainer {

/// Bytes of the process that were in memory at once: VmHWM of proc(5). 0 where the kernel does not say.
inline double peak_host_memory() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) * 1024;  // in kB
  }
  return 0;
}

/// Bytes of `device` that tensors held at once; what CUDA itself and NCCL take is not in it. 0 for the CPU.
inline double peak_device_memory(at::Device device) {
  if (device.is_cpu()) return 0;
  const auto stats = at::getDeviceAllocator(device.type())->getDeviceStats(device.index());
  return static_cast<double>(
      stats.allocated_bytes[static_cast<std::size_t>(at::CachingAllocator::StatType::AGGREGATE)].peak);
}

}  // namespace sealift::trainer
