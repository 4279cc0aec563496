// SPDX-License-Identifier: Apache-2.0
// The list of all kernels, of each piece its own.
#include "trainer/kernels/head.hpp"
#include "trainer/kernels/nf4.hpp"
#include "trainer/kernels/rope.hpp"
#include "trainer/kernels/swiglu.hpp"

namespace sealift::trainer::kernels {

std::vector<Kernel> all_kernels() {
  std::vector<Kernel> all;
  for (const auto& piece : {rope_kernels(), swiglu_kernels(), head_kernels(), nf4_kernels()})
    all.insert(all.end(), piece.begin(), piece.end());
  return all;
}

}  // namespace sealift::trainer::kernels
