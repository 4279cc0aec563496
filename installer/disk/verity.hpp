// SPDX-License-Identifier: Apache-2.0
// fs-verity: the kernel holds every later read of a file to a digest, and refuses every write to it.
#pragma once

#include "sealift/bundle/core/file.hpp"

namespace sealift::installer {

// For a file that is open for reading and by nobody for writing. False where the file system does not have it, or has
// other blocks.
bool enable_verity(const bundle::Descriptor& file);

}  // namespace sealift::installer
