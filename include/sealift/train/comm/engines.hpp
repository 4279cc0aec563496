// SPDX-License-Identifier: Apache-2.0
// The seam through which engines of collectives come: what a group asks for, and who answers for a kind of device.
// Below `groups`, which asks. A program registers an engine by name: `nccl_backend` registers NCCL where the program is
// built with it, a plug-in that is loaded at run time elsewhere, and a test its own.
// Without a maker's header, so that one program runs on hosts with and without a driver. Gloo, which carries what is on
// the host in every world, is no plug-in: `connections` makes it.
//
// An engine is asked for plain sums alone. c10d's PREMUL_SUM is not what it says everywhere: with torch 2.11 and NCCL
// 2.28.9 a group of one gets 0.0 for bf16 and an unscaled reduce-scatter, and HCCL multiplies the caller's input.
#pragma once

#include <sealift/train/bodies.hpp>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace sealift::train {

/// What a group of ranks asks of an engine: one communicator. All ranks of `split_from` ask at the same time.
struct EngineRequest {
  c10::intrusive_ptr<c10d::Store> store;  ///< of this group alone
  int rank = 0;                           ///< in the group
  int size = 1;
  std::string name;                 ///< "world", "shard0": in the engine's messages
  std::vector<std::int64_t> ranks;  ///< of the group, in the world
  at::Device device = at::kCPU;     ///< this rank's
  bool high_priority = false;       ///< of the stream that the collectives run on
  std::chrono::milliseconds timeout{};
  c10::intrusive_ptr<c10d::Backend> split_from;  ///< the communicator to split; null: make a new one
  int color = 0;                                 ///< the group's number among the groups that are split off together
};

/// Makes a communicator and connects it. What it returns issues collectives asynchronously: `synchronize()` of a work
/// makes the current stream wait, `isCompleted()` may be asked by any thread, `abort()` ends what is in flight.
using EngineFactory = std::function<c10::intrusive_ptr<c10d::Backend>(const EngineRequest&)>;

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

/// Makes `factory` what this program asks for collectives of tensors on devices of `type`, in place of what was
/// registered for them; an empty one takes that away. `name` is for messages and results: "nccl". Before groups are
/// made; thread-safe.
void register_engine(at::DeviceType type, std::string name, EngineFactory factory);

/// An engine that a program has registered.
struct RegisteredEngine {
  std::string name;
  EngineFactory factory;
};

/// The engine for devices of `type`; none where the program was built without one and no plug-in was loaded.
std::optional<RegisteredEngine> registered_engine(at::DeviceType type);

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/comm/engines_inl.hpp>
#endif
