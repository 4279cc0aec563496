// SPDX-License-Identifier: Apache-2.0
// QLoRA's base decoded by one kernel; the core asks through its seam (flat/nf4_decoder.hpp) and has the plain way.
// Above `launcher`; the body is nf4_body.hpp.
#pragma once

#include "trainer/kernels/launcher.hpp"

#include <ATen/core/Tensor.h>

namespace sealift::trainer::kernels {

/// Has the core ask for the kernel of devices of a type, whose launcher is looked for at each call; or no longer.
void offer_nf4(c10::DeviceType type, bool offered = true);

std::vector<Kernel> nf4_kernels();

/// As rope_fault.
std::string nf4_fault(Launcher& launcher, c10::Device device);

}  // namespace sealift::trainer::kernels
