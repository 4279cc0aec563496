// SPDX-License-Identifier: Apache-2.0
// What decides in which order floats are summed: ranks and mesh, the device, threads and vector units, kernels of
// our own.
// Kept in a checkpoint's notes; a run that goes on with others agrees to rounding, not bit for bit, and says so.
#pragma once

#include "trainer/ranks/place.hpp"

#include <map>
#include <string>

namespace sealift::trainer {

/// The instructions that the processor's kernels are made for, as ATen names them: DEFAULT, AVX2, AVX512 ...
std::string vector_units();

/// The note of this run, by its key.
std::pair<std::string, std::string> computed_with(const Place& place);

/// A line for a run that goes on from a checkpoint with the notes `then`; empty where all is equal, or nothing is
/// known.
std::string other_means(const std::map<std::string, std::string>& then, const Place& place);

}  // namespace sealift::trainer
