// SPDX-License-Identifier: Apache-2.0
// Two streams of a device beside the one that computes: what comes from the host, and what goes back to it.
// Flats that live on the host are gathered and reduced through them; `visit_device` sends an optimizer's moments.
// A bus copies both ways at full speed beside the work. c10's generic streams and events, so that nothing here is
// compiled for CUDA.
#pragma once

#include <torch/torch.h>

#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <functional>
#include <memory>
#include <optional>

namespace sealift::train {

/// The current stream of a device and two beside it, and their order. On a host, work is done when it is issued.
class SideStreams {
 public:
  enum Lane { In, Current, Out };
  using Mark = std::shared_ptr<void>;  ///< a place in a lane

  explicit SideStreams(at::Device device) : device_(device) {
    if (device.is_cpu()) return;
    const c10::impl::VirtualGuardImpl streams(device.type());
    in_ = streams.getStreamFromGlobalPool(device);
    out_ = streams.getStreamFromGlobalPool(device);
  }
  SideStreams(const SideStreams&) = delete;
  SideStreams& operator=(const SideStreams&) = delete;
  virtual ~SideStreams() = default;

  /// Issues `work` on `lane`.
  virtual void run(Lane lane, const std::function<void()>& work) {
    if (device_.is_cpu()) return work();
    const c10::StreamGuard guard(stream(lane));
    work();
  }

  /// The end of what is issued on `lane` so far.
  virtual Mark mark(Lane lane) {
    if (device_.is_cpu()) return nullptr;
    auto event = std::make_shared<c10::Event>(device_.type());
    event->record(stream(lane));
    return event;
  }

  /// What is issued on `lane` from now on starts after `mark`; a null mark is the start of everything.
  virtual void wait(Lane lane, const Mark& mark) {
    if (mark) std::static_pointer_cast<c10::Event>(mark)->block(stream(lane));
  }

  /// Blocks this thread until `mark`.
  virtual void finish(const Mark& mark) {
    if (mark) std::static_pointer_cast<c10::Event>(mark)->synchronize();
  }

 private:
  c10::Stream stream(Lane lane) const {
    if (lane == Current) return c10::impl::VirtualGuardImpl(device_.type()).getStream(device_);
    return lane == In ? *in_ : *out_;
  }

  at::Device device_;
  std::optional<c10::Stream> in_, out_;
};

}  // namespace sealift::train
