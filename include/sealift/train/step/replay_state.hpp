// SPDX-License-Identifier: Apache-2.0
// What a second run of a body must find as the first did: random numbers and autocast.
// `recompute` takes both before the first run, sets them for the second, and puts back what it found.
// Both are state of thread and process that no input shows: without them dropout drops other elements, and a body under
// autocast runs in fp32 the second time, since backward is called outside of the autocast region.
#pragma once

#include <torch/torch.h>
#include <sealift/train/bodies.hpp>

#include <array>
#include <mutex>
#include <utility>
#include <vector>

namespace sealift::train::detail {

/// The states of the default generators of the host and of every device of at::getAccelerator(): a body may draw on a
/// device that none of its inputs is on. A device's state is two numbers in host memory, so that none is waited for.
class RandomState {
 public:
  RandomState();

  /// Drops the generators that nobody drew from since: without dropout, a body changes none in backward either.
  void keep_drawn();

  /// The same generators as they are now.
  RandomState current() const;

  void restore() const;

 private:
  struct Empty {};
  explicit RandomState(Empty) {}

  void remember(const at::Generator& generator) { states_.emplace_back(generator, now(generator)); }

  static at::Tensor now(at::Generator generator);

  std::vector<std::pair<at::Generator, at::Tensor>> states_;
};

/// What an autocast region sets on its thread.
struct AutocastState {
  /// The host's kind, and the accelerator's if there is one: whose settings the two arrays hold.
  static std::vector<at::DeviceType> devices();

  std::array<bool, 2> enabled{};
  std::array<at::ScalarType, 2> dtype{};
  bool cache = true;  ///< keep the casts of leaves for the region

  static AutocastState current();

  /// The same without a cache, for a run without a graph: its casts have none either, and a weight that is used again
  /// after it in the region (a tied head) would take such a cast and get no gradient.
  AutocastState without_cache() const;

  void set() const;

  bool any() const { return enabled[0] || enabled[1]; }
};

/// Autocast as `state` says, while it lives.
class AutocastGuard {
 public:
  explicit AutocastGuard(const AutocastState& state) : cached_(state.any() && state.cache) { state.set(); }
  AutocastGuard(const AutocastGuard&) = delete;
  AutocastGuard& operator=(const AutocastGuard&) = delete;
  ~AutocastGuard();

 private:
  AutocastState before_ = AutocastState::current();
  bool cached_;
};

/// Random numbers as in `state`, while it lives; afterwards the sequence goes on as before.
class RandomGuard {
 public:
  explicit RandomGuard(const RandomState& state) : before_(state.current()) { state.restore(); }
  RandomGuard(const RandomGuard&) = delete;
  RandomGuard& operator=(const RandomGuard&) = delete;
  ~RandomGuard() { before_.restore(); }

 private:
  RandomState before_;
};

}  // namespace sealift::train::detail

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/step/replay_state_inl.hpp>
#endif
