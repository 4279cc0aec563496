// SPDX-License-Identifier: Apache-2.0
// PREFIX/kernels/NAME/kernel.json: lets a Jupyter from elsewhere (JUPYTER_PATH=PREFIX) start kernels in PREFIX/current.
// One of the activation files.
#pragma once

#include "installer/generations/generation_record.hpp"
#include "installer/prefix/small_files.hpp"

namespace sealift::installer {

// None where the generation brings no ipykernel.
SmallFiles kernel_spec(const Prefix& prefix, const GenerationRecord& record);

}  // namespace sealift::installer
