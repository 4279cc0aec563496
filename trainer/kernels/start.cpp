// SPDX-License-Identifier: Apache-2.0
#include "trainer/kernels/start.hpp"

#include "trainer/kernels/head.hpp"
#include "trainer/kernels/nf4.hpp"
#include "trainer/kernels/rope.hpp"
#include "trainer/kernels/swiglu.hpp"

#include <c10/util/Exception.h>

namespace sealift::trainer::kernels {
namespace {

std::string fault_of(Launcher& launcher, c10::Device device) {
  try {
    for (const auto fault_of_piece : {rope_fault, swiglu_fault, head_fault, nf4_fault}) {
      if (auto fault = fault_of_piece(launcher, device); !fault.empty()) return fault;
    }
    return {};
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    return text.substr(0, text.find('\n'));
  }
}

}  // namespace

std::string adopt(std::shared_ptr<Launcher> launcher, c10::Device device) {
  const auto fault = fault_of(*launcher, device);
  offer_nf4(device.type(), fault.empty());
  register_launcher(device.type(), fault.empty() ? std::move(launcher) : nullptr);
  return fault;
}

std::string start_kernels(c10::Device device, const KernelSource& source) {
  if (!device.is_cuda()) return "they are for NVIDIA's cards, and this device is " + device.str();
  auto loaded = load_cuda_kernels(source.runtime, images(), source.capability, current_stream);
  return loaded.launcher ? adopt(std::move(loaded.launcher), device) : loaded.why_not;
}

}  // namespace sealift::trainer::kernels
