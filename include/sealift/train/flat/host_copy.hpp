// SPDX-License-Identifier: Apache-2.0
// One tensor on its way from a device to the host, beside what the device computes.
// `flat_gradient` sends reduced gradients home through it.
// A copy to memory that is not page-locked, or on the computing stream, would make the next unit's backward wait.
#pragma once

#include <sealift/train/comm/device.hpp>
#include <sealift/train/flat/side_streams.hpp>

#include <utility>

namespace sealift::train {

class HostCopy {
 public:
  /// Starts to copy `tensor`, which is kept until `finish`. One at a time.
  void start(const at::Tensor& tensor) {
    TORCH_CHECK(!source_.defined(), "a copy to the host is in flight; finish it first");
    if (!streams_) streams_ = std::make_unique<SideStreams>(tensor.device());
    source_ = tensor;
    target_ =
        torch::empty(tensor.sizes(), tensor.options().device(at::kCPU).pinned_memory(is_accelerator(tensor.device())));
    streams_->wait(SideStreams::Out, streams_->mark(SideStreams::Current));
    streams_->run(SideStreams::Out, [&] { target_.copy_(source_, /*non_blocking=*/true); });
    arrived_ = streams_->mark(SideStreams::Out);
  }

  /// The copy, once it is complete; undefined if none was started.
  at::Tensor finish() {
    if (!source_.defined()) return {};
    streams_->finish(std::exchange(arrived_, nullptr));
    source_.reset();
    return std::exchange(target_, {});
  }

 private:
  std::unique_ptr<SideStreams> streams_;
  at::Tensor source_, target_;
  SideStreams::Mark arrived_;
};

}  // namespace sealift::train
