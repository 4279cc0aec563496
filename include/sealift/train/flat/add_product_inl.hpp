// SPDX-License-Identifier: Apache-2.0
// The bodies of add_product.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/flat/add_product.hpp>

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/version.h>

#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 10)
#define SEALIFT_ADDS_WIDER 1
#else
#define SEALIFT_ADDS_WIDER 0
#endif

namespace sealift::train::detail {

SEALIFT_BODY bool adds_products(const at::Tensor& matrix, at::ScalarType sum) {
  const auto dtype = matrix.scalar_type();
  if (dtype == sum) return true;
  if (!SEALIFT_ADDS_WIDER || sum != at::kFloat || !at::isReducedFloatingType(dtype)) return false;
  static const auto wider = c10::Dispatcher::singleton().findSchema({"aten::addmm", "dtype_out"});
  const auto backend = matrix.key_set().highestBackendKey();
  return wider &&
         wider->hasKernelForDispatchKey(c10::toRuntimePerBackendFunctionalityKey(c10::DispatchKey::Dense, backend));
}

SEALIFT_BODY void add_product(at::Tensor& sum, const at::Tensor& left, const at::Tensor& right, double beta,
                              double alpha) {
  if (left.scalar_type() == sum.scalar_type()) {
    at::addmm_out(sum, sum, left, right, beta, alpha);
    return;
  }
#if SEALIFT_ADDS_WIDER
  at::addmm_out(sum, sum, left, right, sum.scalar_type(), beta, alpha);
#endif
}

}  // namespace sealift::train::detail

#undef SEALIFT_ADDS_WIDER
