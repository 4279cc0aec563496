// SPDX-License-Identifier: Apache-2.0
// The CUDA half of sealift-train: a library that brings libtorch_cuda and NCCL with it.
// Loaded by `load_cuda` (device.cpp) on a host with a driver; nothing links it.
// All goes into the program's own registries by pointers: a registry variable of this library would be another one.
#include "trainer/ranks/cuda_half.hpp"

#include <ATen/native/transformers/cuda/sdp_utils.h>
#include <sealift/train/comm/nccl_backend.hpp>

namespace {

/// ATen's own answer of what its flash attention takes: cards, dtypes, sizes, and whether it is switched off. Its call
/// by lengths pads no heads, while at::scaled_dot_product_attention does.
bool attends_by_length(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values) {
  const sdp::sdp_params asked{queries.transpose(1, 2), keys.transpose(1, 2),           values.transpose(1, 2), {}, 0.0,
                              /*is_causal=*/true,      queries.size(2) != keys.size(2)};
  return queries.size(3) % 8 == 0 && sdp::can_use_flash_attention(asked, /*debug=*/false);
}

}  // namespace

/// Gives the program the maker of NCCL backends, and what it asks of attention.
extern "C" __attribute__((visibility("default"))) void sealift_cuda_half_2(sealift::trainer::CudaHalf* half) {
  half->nccl = sealift::train::make_nccl;
  half->attends_by_length = attends_by_length;
}
