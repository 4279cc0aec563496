// SPDX-License-Identifier: Apache-2.0
// Functions that host and device have by different names. Their results may be neighbours of each other in fp32, so
// that what is made of them is held to bounds.
#pragma once

namespace sealift::trainer::kernels {

inline float exponential(float value) {
#ifdef __CUDACC__
  return expf(value);
#else
  return __builtin_expf(value);
#endif
}

inline float logarithm(float value) {
#ifdef __CUDACC__
  return logf(value);
#else
  return __builtin_logf(value);
#endif
}

}  // namespace sealift::trainer::kernels
