// SPDX-License-Identifier: Apache-2.0
// Two streams of a device beside its computing one: what comes from the host, and what goes back to it.
// Flats that live on the host are gathered and reduced through them; `visit_device` sends an optimizer's moments.
// A bus copies both ways at full speed beside the work. c10's generic streams and events, so that nothing here is
// compiled for CUDA.
#pragma once

#include <torch/torch.h>
#include <sealift/train/bodies.hpp>

#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>

#include <functional>
#include <memory>
#include <optional>

namespace sealift::train {

/// The current stream of a device and two beside it, and their order. On a host, work is done when it is issued.
class SideStreams {
 public:
  enum Lane { In, Current, Out };
  using Mark = std::shared_ptr<void>;  ///< a place in a lane

  explicit SideStreams(at::Device device);
  SideStreams(const SideStreams&) = delete;
  SideStreams& operator=(const SideStreams&) = delete;
  virtual ~SideStreams() = default;

  /// Issues `work` on `lane`.
  SEALIFT_BODY virtual void run(Lane lane, const std::function<void()>& work);

  /// The end of what is issued on `lane` so far.
  SEALIFT_BODY virtual Mark mark(Lane lane);

  /// What is issued on `lane` from now on starts after `mark`; a null mark is the start of everything.
  SEALIFT_BODY virtual void wait(Lane lane, const Mark& mark);

  /// Blocks this thread until `mark`.
  SEALIFT_BODY virtual void finish(const Mark& mark);

 private:
  c10::Stream stream(Lane lane) const;

  at::Device device_;
  std::optional<c10::Stream> in_, out_;
};

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/flat/side_streams_inl.hpp>
#endif
