// SPDX-License-Identifier: Apache-2.0
// A kernel of a made device that is one operation, whatever it computes.
// Between `kernels` and the fused ones, which are made of it.
#pragma once

#include "tests/train/made_device/kernels.hpp"
#include "tests/train/made_device/streams.hpp"

#include <torch/torch.h>

namespace sealift::test::made {

/// Queues `kernel` on the current stream of `like`'s device as one operation.
template <class Kernel>
void queue_one(const char* name, const at::Tensor& like, std::initializer_list<at::Tensor> all, Kernel kernel) {
  std::int64_t bytes = 0;
  for (const auto& each : all) bytes += each.defined() ? static_cast<std::int64_t>(each.nbytes()) : 0;
  count(name, bytes);
  const c10::DeviceGuard on(like.device());
  current_queue(like.device().index()).push([kernel = std::move(kernel)] {
    const at::AutoDispatchBelowAutograd no_autograd;
    kernel();
  });
}

inline at::Tensor task_of(const std::optional<at::Tensor>& tensor) {
  return tensor && tensor->defined() ? for_task(*tensor) : at::Tensor();
}

}  // namespace sealift::test::made
