// SPDX-License-Identifier: Apache-2.0
// The kernels as a device starts them: a name, a bound of threads, a body. NVRTC compiles this file when the project is
// built (compile_kernels.cpp), with -default-device, so that bodies need no words of CUDA's. Each name is one of
// all_kernels.cpp, and has a line of limits in limits.txt.
#include "trainer/kernels/device_block.hpp"
#include "trainer/kernels/head_body.hpp"
#include "trainer/kernels/nf4_body.hpp"
#include "trainer/kernels/rope_body.hpp"
#include "trainer/kernels/swiglu_body.hpp"

namespace sealift::trainer::kernels {

#define SEALIFT_KERNEL(name, threads, Args, body)                                             \
  extern "C" __global__ void __launch_bounds__(threads) name(const __grid_constant__ Args args) { \
    DeviceBlock block;                                                                        \
    body(block, args);                                                                        \
  }

SEALIFT_KERNEL(sealift_rope_fp32, 128, RopeArgs, (rope<float, 1>))
SEALIFT_KERNEL(sealift_rope_bf16, 128, RopeArgs, (rope<Bf16, 1>))
SEALIFT_KERNEL(sealift_rope_fp16, 128, RopeArgs, (rope<Fp16, 1>))
SEALIFT_KERNEL(sealift_rope_fp32_by_4, 128, RopeArgs, (rope<float, 4>))
SEALIFT_KERNEL(sealift_rope_bf16_by_4, 128, RopeArgs, (rope<Bf16, 4>))
SEALIFT_KERNEL(sealift_rope_fp16_by_4, 128, RopeArgs, (rope<Fp16, 4>))

SEALIFT_KERNEL(sealift_swiglu_fp32, 256, SwiGluArgs, (swiglu<float, 1>))
SEALIFT_KERNEL(sealift_swiglu_bf16, 256, SwiGluArgs, (swiglu<Bf16, 1>))
SEALIFT_KERNEL(sealift_swiglu_fp16, 256, SwiGluArgs, (swiglu<Fp16, 1>))
SEALIFT_KERNEL(sealift_swiglu_fp32_by_4, 256, SwiGluArgs, (swiglu<float, 4>))
SEALIFT_KERNEL(sealift_swiglu_bf16_by_8, 256, SwiGluArgs, (swiglu<Bf16, 8>))
SEALIFT_KERNEL(sealift_swiglu_fp16_by_8, 256, SwiGluArgs, (swiglu<Fp16, 8>))
SEALIFT_KERNEL(sealift_swiglu_backward_fp32, 256, SwiGluBackwardArgs, (swiglu_backward<float, 1>))
SEALIFT_KERNEL(sealift_swiglu_backward_bf16, 256, SwiGluBackwardArgs, (swiglu_backward<Bf16, 1>))
SEALIFT_KERNEL(sealift_swiglu_backward_fp16, 256, SwiGluBackwardArgs, (swiglu_backward<Fp16, 1>))
SEALIFT_KERNEL(sealift_swiglu_backward_fp32_by_4, 256, SwiGluBackwardArgs, (swiglu_backward<float, 4>))
SEALIFT_KERNEL(sealift_swiglu_backward_bf16_by_8, 256, SwiGluBackwardArgs, (swiglu_backward<Bf16, 8>))
SEALIFT_KERNEL(sealift_swiglu_backward_fp16_by_8, 256, SwiGluBackwardArgs, (swiglu_backward<Fp16, 8>))

SEALIFT_KERNEL(sealift_head_fp32, 512, HeadArgs, (head<float, 1>))
SEALIFT_KERNEL(sealift_head_bf16, 512, HeadArgs, (head<Bf16, 1>))
SEALIFT_KERNEL(sealift_head_fp16, 512, HeadArgs, (head<Fp16, 1>))
SEALIFT_KERNEL(sealift_head_fp32_by_4, 512, HeadArgs, (head<float, 4>))
SEALIFT_KERNEL(sealift_head_bf16_by_8, 512, HeadArgs, (head<Bf16, 8>))
SEALIFT_KERNEL(sealift_head_fp16_by_8, 512, HeadArgs, (head<Fp16, 8>))

SEALIFT_KERNEL(sealift_nf4_fp32, 256, Nf4Args, (nf4<float, false>))
SEALIFT_KERNEL(sealift_nf4_bf16, 256, Nf4Args, (nf4<Bf16, false>))
SEALIFT_KERNEL(sealift_nf4_fp16, 256, Nf4Args, (nf4<Fp16, false>))
SEALIFT_KERNEL(sealift_nf4_fp32_by_8, 256, Nf4Args, (nf4<float, true>))
SEALIFT_KERNEL(sealift_nf4_bf16_by_8, 256, Nf4Args, (nf4<Bf16, true>))
SEALIFT_KERNEL(sealift_nf4_fp16_by_8, 256, Nf4Args, (nf4<Fp16, true>))

}  // namespace sealift::trainer::kernels
