// SPDX-License-Identifier: Apache-2.0
#include "trainer/fine_tune/own_kernels.hpp"

#include "trainer/kernels/start.hpp"
#include "trainer/ranks/loaded_library.hpp"

namespace sealift::trainer {

std::string start_own_kernels(const Place& place, bool wanted) {
  kernels::forget_kernels_that_ran();
  kernels::switch_kernels(wanted);
  if (!wanted) return "own_kernels is false";
  const auto& described = place.device.description;
  const auto why_not = kernels::start_kernels(
      place.device.device,
      {.runtime = loaded_library("libcudart.so"), .capability = described.value("capability", std::string())});
  if (!why_not.empty() && place.device.device.is_cuda()) {
    std::cerr << (place.is_first() ? "" : c10::str("rank ", place.rank, ": "))
              << "note: own kernels are left out: " << why_not << "; LibTorch's compute the same, slower\n";
  }
  return why_not;
}

nlohmann::ordered_json own_kernels_that_ran(const std::string& why_not) {
  nlohmann::ordered_json result{{"ran", kernels::kernels_that_ran()}};
  if (!why_not.empty()) result["why_not"] = why_not;
  return result;
}

}  // namespace sealift::trainer
