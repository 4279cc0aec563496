// SPDX-License-Identifier: Apache-2.0
// The numbers that kernels read and write: fp32, bf16 and fp16, widened to fp32 and rounded once, to even.
// The lowest file of the room. It is compiled for the host and, by NVRTC, for the device: no standard header, and no
// type of CUDA's, so that both compile the same text.
#pragma once

namespace sealift::trainer::kernels {

struct Bf16 {
  unsigned short bits;
};
struct Fp16 {
  unsigned short bits;
};

/// Values that are loaded and stored at once; their address is a multiple of their size.
template <class Value, unsigned kCount>
struct alignas(sizeof(Value) * kCount) Pack {
  Value values[kCount];
};

inline float wide(float value) {
  return value;
}

inline float wide(Bf16 value) {
  return __builtin_bit_cast(float, static_cast<unsigned>(value.bits) << 16);
}

/// On a device in one instruction, which gives the same numbers.
inline float wide(Fp16 value) {
#ifdef __CUDACC__
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(value.bits));
  return result;
#else
  const unsigned sign = static_cast<unsigned>(value.bits & 0x8000) << 16, magnitude = value.bits & 0x7fffu;
  if (magnitude >= 0x7c00) return __builtin_bit_cast(float, sign | 0x7f800000u | (magnitude << 13));
  // Exponents count from another number; the product is exact, of what is below the normal ones too.
  const float moved = __builtin_bit_cast(float, magnitude << 13) * 0x1p112f;
  return __builtin_bit_cast(float, __builtin_bit_cast(unsigned, moved) | sign);
#endif
}

/// The nearest number of a type, of two the even one; NaN stays NaN, whatever its bits are.
template <class Value>
Value narrow(float value);

template <>
inline float narrow<float>(float value) {
  return value;
}

template <>
inline Bf16 narrow<Bf16>(float value) {
  const auto bits = __builtin_bit_cast(unsigned, value);
  if (value != value) return {0x7fc0};
  return {static_cast<unsigned short>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

template <>
inline Fp16 narrow<Fp16>(float value) {
#ifdef __CUDACC__
  Fp16 result;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
  return result;
#else
  const auto all = __builtin_bit_cast(unsigned, value);
  const auto sign = static_cast<unsigned short>(all >> 16 & 0x8000);
  const unsigned bits = all & 0x7fffffffu;
  const float magnitude = __builtin_bit_cast(float, bits);
  unsigned rounded = 0;
  if (value != value) {
    rounded = 0x7e00;
  } else if (magnitude >= 65520) {
    rounded = 0x7c00;
  } else if (magnitude >= 0x1p-14f) {
    rounded = (bits + 0xfff + (bits >> 13 & 1) - (112u << 23)) >> 13;
  } else {  // below the normal ones: the sum has just the bits that fp16 has there
    rounded = __builtin_bit_cast(unsigned, magnitude + 0.5f) - __builtin_bit_cast(unsigned, 0.5f);
  }
  return {static_cast<unsigned short>(sign | rounded)};
#endif
}

}  // namespace sealift::trainer::kernels
