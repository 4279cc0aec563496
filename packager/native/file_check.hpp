// SPDX-License-Identifier: Apache-2.0
// What is wrong with a native file by itself, whatever it needs: its machine, its stack, its name. Pure.
#pragma once

#include <optional>

#include "packager/native/native_finding.hpp"
#include "packager/native/native_walk.hpp"

namespace sealift::packager {

// A wheel may bring the same helper program for several machines; one without any for this machine is the wrong
// wheel.
NativeFindings architecture_findings(const NativeIndex& index);

// Each file alone. `glibc` is what libraries are loaded with; of `walk`, who is needed by others.
NativeFindings file_findings(const NativeIndex& index, const NativeWalk& walk, const bundle::GlibcVersion& glibc);

// The newest major version of CUDA's runtime among the libraries.
std::optional<unsigned> carried_cuda(const NativeIndex& index);

}  // namespace sealift::packager
