// SPDX-License-Identifier: Apache-2.0
// CUDA memory that is NaN whenever nobody has written it: when it is handed out, and again as soon as it is free for
// others. For gpu tests, installed before the first allocation. Around LibTorch's caching allocator, which goes on
// deciding who gets which block. A block is poisoned on its own stream through an allocation of the same size, as its
// next user would write it: one that another stream still uses, and that was recorded or held for it, is not handed out
// then, so only real mistakes read NaN.
#pragma once

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/csrc/cuda/CUDAPluggableAllocator.h>

namespace sealift::test {

class PoisoningAllocator final : public torch::cuda::CUDAPluggableAllocator::CUDAPluggableAllocator {
  using Native = c10::cuda::CUDACachingAllocator::CUDAAllocator;

 public:
  /// Takes the place of the process's CUDA allocator for good; throws when that one has been used.
  static void install() {
    auto* native = c10::cuda::CUDACachingAllocator::get();
    torch::cuda::CUDAPluggableAllocator::changeCurrentAllocator(std::make_shared<PoisoningAllocator>(native));
  }

  explicit PoisoningAllocator(Native* native)
      : CUDAPluggableAllocator([native](std::size_t bytes, int device,
                                        cudaStream_t stream) { return take(native, bytes, device, stream); },
                               [native](void* memory, std::size_t bytes, int device, cudaStream_t stream) {
                                 native->raw_delete(memory);
                                 native->raw_delete(take(native, bytes, device, stream));
                               }),
        native_(native) {
    set_init_fn([native](int devices) { native->init(devices); });
    set_record_stream_fn([native](void* memory, cudaStream_t stream) {
      // Named as its owner names it, and not owned here.
      c10::DeviceIndex device = 0;
      C10_CUDA_CHECK(c10::cuda::GetDevice(&device));
      at::DataPtr named(memory, memory, native->raw_deleter(), {at::kCUDA, device});
      native->recordStream(named, c10::cuda::getStreamFromExternal(stream, device));
      named.release_context();
    });
  }

  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    return native_->getDeviceStats(device);
  }
  void resetAccumulatedStats(c10::DeviceIndex device) override { native_->resetAccumulatedStats(device); }
  void resetPeakStats(c10::DeviceIndex device) override { native_->resetPeakStats(device); }
  void emptyCache(c10::cuda::MempoolId_t pool = {0, 0}) override { native_->emptyCache(pool); }

 private:
  static void* take(Native* native, std::size_t bytes, int device, cudaStream_t stream) {
    if (bytes == 0) return nullptr;
    const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(device));
    void* memory = native->raw_alloc_with_stream(bytes, stream);
    C10_CUDA_CHECK(cudaMemsetAsync(memory, 0xff, bytes, stream));  // NaN in every floating type
    return memory;
  }

  Native* native_;
};

}  // namespace sealift::test
