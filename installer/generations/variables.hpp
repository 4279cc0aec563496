// SPDX-License-Identifier: Apache-2.0
// The variables that a generation sets: what its bundle carried in share/sealift/environment.
// For activation and status; sealift-start reads the same file by itself.
#pragma once

#include <filesystem>

#include "sealift/bundle/manifest/variables.hpp"

namespace sealift::installer {

// None where the generation has no such file. Throws Format for one that is damaged.
bundle::Variables variables_of(const std::filesystem::path& generation);

}  // namespace sealift::installer
