// SPDX-License-Identifier: Apache-2.0
// What a body sees of its block on a device; HostBlock (host_block.hpp) is the same on the host, and says what each
// means. For device.cu alone, which NVRTC compiles.
#pragma once

namespace sealift::trainer::kernels {

/// A value of the thread that asks, which it keeps from phase to phase.
template <class T>
class OfThread {
 public:
  T& operator[](unsigned /*thread*/) { return value_; }

 private:
  T value_;
};

class DeviceBlock {
 public:
  unsigned index() const { return blockIdx.x; }
  unsigned threads() const { return blockDim.x; }

  template <class T>
  OfThread<T> per_thread() const {
    return {};
  }

  template <class T, unsigned kCount>
  T* shared() const {
    __shared__ T memory[kCount];
    return memory;
  }

  template <class Phase>
  void each(Phase phase) const {
    phase(threadIdx.x);
    __syncthreads();
  }

  template <class Phase>
  void last(Phase phase) const {
    phase(threadIdx.x);
  }

  template <class T, class Merge>
  void over_warp(OfThread<T>& values, Merge merge) const {
    for (unsigned distance = 16; distance > 0; distance /= 2) {
      values[0] = merge(values[0], from_lane(values[0], distance));
    }
  }

 private:
  /// The value of the lane whose number differs in one bit.
  template <class T>
  static T from_lane(const T& value, unsigned distance) {
    static_assert(sizeof(T) % sizeof(unsigned) == 0);
    struct Words {
      unsigned all[sizeof(T) / sizeof(unsigned)];
    };
    auto words = __builtin_bit_cast(Words, value);
    for (auto& word : words.all) word = __shfl_xor_sync(0xffffffffu, word, distance);
    return __builtin_bit_cast(T, words);
  }
};

}  // namespace sealift::trainer::kernels
