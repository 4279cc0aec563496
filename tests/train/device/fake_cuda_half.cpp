// SPDX-License-Identifier: Apache-2.0
// A CUDA half without CUDA: what it gives the program answers each request with an error that says so.
// For device_test. Hidden symbols keep its registry apart from the program's, as a loader may do with any library.
// The answer names the request, so the test sees that it arrived.
#include <sealift/train/comm/engines.hpp>

extern "C" __attribute__((visibility("default"))) void sealift_cuda_half(sealift::train::EngineFactory* factory) {
  *factory = [](const sealift::train::EngineRequest& request) -> c10::intrusive_ptr<c10d::Backend> {
    TORCH_CHECK(false, "the fake half was asked for ", request.name,
                " and has its own registry: ", !sealift::train::registered_engine(at::kCUDA));
  };
}
