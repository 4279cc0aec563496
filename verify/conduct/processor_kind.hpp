// SPDX-License-Identifier: Apache-2.0
// What a processor's kind is called: equal names compute equal bits.
// Asked by the arithmetic's references and by golden runs, so that both know the same kinds.
// Virtual machines give one name to several processors, and ATEN_CPU_CAPABILITY chooses other kernels on one: both
// are in the name.
#pragma once

#include <string>

namespace sealift::verify {

/// The processor with its model, its vector units and the instructions that the kernels are made for, `vector_units` as
/// ATen names them ("AVX2"); empty: not known.
std::string processor_kind(const std::string& vector_units);

}  // namespace sealift::verify
