// SPDX-License-Identifier: Apache-2.0
// What the core asks of a device, in c10's words alone: which one is current, what its stream has done, where numbers
// can be read.
// Below all of `comm`, and used by the rooms above: no maker's name is needed to train on a device, so one that comes
// later (PrivateUse1) is as good as CUDA.
#pragma once

#include <torch/torch.h>
#include <sealift/train/bodies.hpp>

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <optional>

namespace sealift::train {

/// Whether `device` has memory of its own and streams: neither the CPU nor the meta device. Host memory that is copied
/// to or from it is page-locked, by the allocator of at::getAccelerator().
bool is_accelerator(at::Device device);

/// Makes `device` the current one of the calling thread. A maker's functions use the current device, and a thread that
/// has none makes a context on device 0.
void use_device(at::Device device);

/// Where ranks keep numbers that they exchange and then read: on `device`, or on the host if it holds no values, as the
/// meta device in a rehearsal.
at::Device device_of_values(at::Device device);

/// `tensor` in host memory; zeros if its device holds no values.
at::Tensor values_on_host(const at::Tensor& tensor);

/// An event that passes when the current stream of `device` has come here; none on the CPU, which is always here.
std::optional<c10::Event> mark_stream(at::Device device);

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/comm/device_inl.hpp>
#endif
