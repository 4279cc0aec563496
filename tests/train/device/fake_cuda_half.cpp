// SPDX-License-Identifier: Apache-2.0
// A CUDA half without CUDA: what it gives the program answers each request with an error that says so.
// For device_test. Hidden symbols keep its registry apart from the program's, as a loader may do with any library.
// The answer names the request, so the test sees that it arrived.
#include "trainer/ranks/cuda_half.hpp"

namespace {

bool attends_in_threes(const at::Tensor& queries, const at::Tensor&, const at::Tensor&) {
  return queries.size(1) == 3;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void sealift_cuda_half_2(sealift::trainer::CudaHalf* half) {
  half->nccl = [](const sealift::train::EngineRequest& request) -> c10::intrusive_ptr<c10d::Backend> {
    TORCH_CHECK(false, "the fake half was asked for ", request.name,
                " and has its own registry: ", !sealift::train::registered_engine(at::kCUDA));
  };
  half->attends_by_length = attends_in_threes;
}
