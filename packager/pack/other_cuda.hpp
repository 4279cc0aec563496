// SPDX-License-Identifier: Apache-2.0
// A package for another CUDA than the bundle's (cupy-cuda12x beside CUDA 13): this machine's library,
// or a package that brings it, is no remedy then. Beside plan_check, which has what the native check found and the
// wheels.
#pragma once

#include <optional>
#include <string_view>

#include "packager/native/native_file.hpp"
#include "packager/native/native_report.hpp"
#include "packager/pack/pack_plan.hpp"

namespace sealift::packager {

// 12 of "libcudart.so.12"; nothing for libraries whose number is not that of CUDA, such as libcufft.so.11.
std::optional<unsigned> cuda_of_library(std::string_view name);

// Gives each library that such a package lacks its next step: leave the package out, by `excludes` or without the extra
// that asks for it, which the wheels of the plan say.
void name_other_cuda(NativeReport& report, const NativeFiles& files, const PackPlan& plan);

}  // namespace sealift::packager
