// SPDX-License-Identifier: Apache-2.0
// A device without memory on which a program runs as on a GPU: shapes are computed, bytes are counted, values are not.
// `rehearse` keeps one alive while it runs the engine; nothing of it is left in the process afterwards.
// LibTorch's meta device lacks what Python's PyTorch adds: a count of its bytes, streams, and some dozen operators.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <string>

namespace sealift::trainer {

/// Which device's memory is imitated where kernels of devices differ in what they allocate.
enum class Imitated { Cuda, Cpu };

/// One at a time in a process. Tensors of `device()` that outlive it hold bytes of no room and are still freed.
class MetaRoom {
 public:
  /// `capacity`: bytes after which an allocation throws c10::OutOfMemoryError; 0: none. `doing`: what the message says
  /// the program was at.
  explicit MetaRoom(Imitated imitated, std::int64_t capacity = 0, std::function<std::string()> doing = {});
  ~MetaRoom();
  MetaRoom(const MetaRoom&) = delete;
  MetaRoom& operator=(const MetaRoom&) = delete;

  /// The device, as a rank's `World::device` wants it: with a number.
  static at::Device device() { return {at::kMeta, 0}; }

  /// Bytes that are allocated now, of tensors made since the room was.
  std::int64_t live() const;

  /// The most that were since the last call.
  std::int64_t take_peak();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace sealift::trainer
