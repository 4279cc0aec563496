// SPDX-License-Identifier: Apache-2.0
// Memory for flats on the CPU that is kept: what one unit frees, the next one takes.
// Below `flat_param` and `flat_gradient`, which get all their buffers here.
// LibTorch's CUDA allocator keeps freed memory, but its CPU allocator returns it to the system, which then clears every
// page again: a tenth of a step where a model is gathered and freed each time. On other devices nothing is added.
// Mirrored by trainer/plan/pool.hpp: change both.
#pragma once

#include <sealift/train/bodies.hpp>
#include <sealift/train/flat/steady_buffers.hpp>

#include <utility>

namespace sealift::train::detail {

/// Allocates CPU memory and keeps what is freed, within a bound: memory in use and memory kept are together never more
/// than the most that was in use at one time since `release_kept`. Thread-safe.
class BufferPool final : public c10::Allocator {
 public:
  /// The pool of all flats; never destroyed, since a gradient may outlive everything else.
  static BufferPool& instance();

  SEALIFT_BODY at::DataPtr allocate(std::size_t bytes) override;

  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }

  /// Bytes that are kept for later allocations.
  std::size_t kept_bytes() const;

  /// Returns what is kept to the system.
  void release_kept();

  /// Memory is kept while one of these exists; the last one frees it.
  struct User {
    User();
    ~User();
    User(const User&) = delete;
    User& operator=(const User&) = delete;
  };

  /// For tests: fills freed memory with NaN, so that reading before writing shows.
  void poison_returned(bool on);

 private:
  struct Block {
    std::size_t bytes = 0;
    at::DataPtr memory;
  };

  static void give_back(void* context);

  void trim();

  mutable std::mutex guard_;
  std::list<std::unique_ptr<Block>> kept_;  ///< longest unused first
  std::size_t kept_bytes_ = 0, out_ = 0, peak_ = 0;
  std::int64_t users_ = 0;
  bool poison_ = false;
};

/// While it lives, `flat_buffer` takes memory of this thread's flats from `buffers`, unless null.
class UseBuffers {
 public:
  explicit UseBuffers(const std::shared_ptr<SteadyBuffers>& buffers);
  UseBuffers(const UseBuffers&) = delete;
  UseBuffers& operator=(const UseBuffers&) = delete;
  ~UseBuffers() { current() = before_; }

  static SteadyBuffers*& current();

 private:
  SteadyBuffers* before_;
};

/// An uninitialised buffer of `numel` elements for a flat. [numel]
at::Tensor flat_buffer(std::int64_t numel, const at::TensorOptions& options);

/// The same before its memory is there: views can be made, values cannot. Its storage says its full size.
at::Tensor flat_without_memory(std::int64_t numel, const at::TensorOptions& options);

}  // namespace sealift::train::detail

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/flat/buffer_pool_inl.hpp>
#endif
