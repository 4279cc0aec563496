// SPDX-License-Identifier: Apache-2.0
// Autocast on the made devices, by the lists that LibTorch has for all kinds of devices.
#include "tests/train/made_device/fused_kernels.hpp"

#include <ATen/autocast_mode.h>
#include <torch/library.h>

namespace sealift::test::made {

void register_autocast() {
  using namespace at::autocast;
  static torch::Library rest(torch::Library::IMPL, "_", c10::DispatchKey::AutocastPrivateUse1, __FILE__, __LINE__);
  rest.fallback(torch::CppFunction::makeFallthrough());
  static torch::Library m(torch::Library::IMPL, "aten", c10::DispatchKey::AutocastPrivateUse1, __FILE__, __LINE__);
#define SEALIFT_IN_HALF(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define SEALIFT_IN_FP32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
  AT_FORALL_LOWER_PRECISION_FP(SEALIFT_IN_HALF)
  AT_FORALL_FP32(SEALIFT_IN_FP32)
#undef SEALIFT_IN_HALF
#undef SEALIFT_IN_FP32
}

}  // namespace sealift::test::made
