// SPDX-License-Identifier: Apache-2.0
// The seam through which NCCL comes: what a group asks for, and the one function that answers.
// Below `groups`, which asks; `nccl_backend` answers where the program is built with NCCL, a plug-in that is loaded at
// run time elsewhere, and a test with an engine of its own.
// Without a CUDA header, so that one program runs on hosts with and without a driver.
#pragma once

#include <sealift/train/bodies.hpp>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace sealift::train {

/// What a group of ranks asks of NCCL: one communicator. All ranks of `split_from` ask at the same time.
struct NcclRequest {
  c10::intrusive_ptr<c10d::Store> store;  ///< of this group alone
  int rank = 0;                           ///< in the group
  int size = 1;
  std::string name;                 ///< "world", "shard0": in NCCL's messages
  std::vector<std::int64_t> ranks;  ///< of the group, in the world
  at::Device device = at::kCPU;     ///< this rank's
  bool high_priority = false;       ///< of the stream that the collectives run on
  std::chrono::milliseconds timeout{};
  c10::intrusive_ptr<c10d::Backend> split_from;  ///< the communicator to split; null: make a new one
  int color = 0;                                 ///< the group's number among those that are split off together
};

/// Makes a communicator and connects it. What it returns issues collectives asynchronously: `synchronize()` of a work
/// makes the current stream wait, `isCompleted()` may be asked by any thread, `abort()` ends what is in flight.
using NcclFactory = std::function<c10::intrusive_ptr<c10d::Backend>(const NcclRequest&)>;

/// What an engine offers besides c10d's interface, if its works keep tensors alive.
struct LightWorks {
  virtual ~LightWorks() = default;
  /// A work that tells the same as `work` without its tensors, for the watch, which keeps it until the device is done:
  /// longer than a program keeps the tensors, since a host runs ahead.
  virtual c10::intrusive_ptr<c10d::Work> without_tensors(const c10d::Work& work) const = 0;
};

/// The engines of a rank whose collectives run on its device. They belong to their groups. Thread-safe.
class DeviceEngines {
 public:
  void add(const c10::intrusive_ptr<c10d::Backend>& engine);

  /// Ends all collectives in flight, of all engines at the same time: one that is aborted alone may wait for what
  /// another has on the device.
  void abort();

  /// For the end of an engine, where an error has no one to tell.
  template <class Call>
  static void quietly(const Call& call) {
    try {
      call();
    } catch (const std::exception&) {
      // Its collectives are lost anyway.
    }
  }

 private:
  std::mutex mutex_;
  std::vector<c10::weak_intrusive_ptr<c10d::Backend>> engines_;
};

namespace detail {

/// The factory of this program; empty where it was built without NCCL and no plug-in was loaded. Set before groups are
/// made.
NcclFactory& nccl_factory();

}  // namespace detail

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/comm/nccl_inl.hpp>
#endif
