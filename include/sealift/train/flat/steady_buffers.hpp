// SPDX-License-Identifier: Apache-2.0
// Memory of one model's flats that keeps its addresses: what a flat lets go of is kept for the next of its size.
// Beside `buffer_pool`, for jobs that ask for it (`Policy::stable_addresses`): what is registered with a network, or
// recorded in a graph, must lie where it lay in the step before.
// Of the free buffers of a size the oldest is taken, so the same calls get the same buffers in every step: blocks of
// one size that are gathered one ahead alternate between two.
#pragma once

#include <torch/torch.h>
#include <sealift/train/bodies.hpp>

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

namespace sealift::train {

/// One buffer of a model's flats, for a library that registers memory.
struct FlatMemory {
  const void* data = nullptr;
  std::size_t bytes = 0;
  at::Device device = at::kCPU;
};

namespace detail {

/// Thread-safe. Lives as long as any tensor in its memory.
class SteadyBuffers : public std::enable_shared_from_this<SteadyBuffers> {
 public:
  /// Uninitialised; returns here when it is destroyed. On a device it is taken by one stream only, the current one, as
  /// the allocators of devices do it: nothing else orders what is written into it after what was read from it.
  at::DataPtr take(std::size_t bytes, at::Device device);

  /// All there are, used or free, the oldest first.
  std::vector<FlatMemory> all() const;

  /// How many were made so far.
  std::uint64_t made() const;

  /// Gives free buffers to the system again, of all but the first `made`.
  void release(std::uint64_t made);

  /// Calls `observer` for whatever is taken from now on.
  void observe(std::function<void(const void* data, std::size_t bytes)> observer);

  /// For tests: fills memory on the CPU that returns with NaN, so that reading before writing shows.
  static void poison_returned(bool on) { poison() = on; }

 private:
  struct Buffer {
    std::size_t bytes;
    c10::StreamId stream;
    std::uint64_t number;
    at::DataPtr memory;
    bool free = false;
  };
  struct Lease {
    std::shared_ptr<SteadyBuffers> owner;
    std::list<Buffer>::iterator buffer;
  };

  static std::atomic<bool>& poison();

  static void give_back(void* context);

  mutable std::mutex guard_;
  std::list<Buffer> buffers_;
  std::uint64_t made_ = 0;
  std::function<void(const void*, std::size_t)> observer_;
};

}  // namespace detail

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/flat/steady_buffers_inl.hpp>
#endif
