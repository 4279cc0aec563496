// SPDX-License-Identifier: Apache-2.0
// The end of a file of JSON lines that a run goes on with, after it was killed or its machine lost power.
// Before a line is added: what follows the last whole line would become the beginning of it.
// Only the end is read, and only a torn line is taken off.
#pragma once

#include <filesystem>

namespace sealift::trainer {

/// Cuts `path` behind its last whole line: one that ends with a newline and has no zero bytes, which a file system
/// leaves where it promised room and lost power. A file that cannot be read or cut stays as it is.
void end_in_whole_line(const std::filesystem::path& path);

}  // namespace sealift::trainer
