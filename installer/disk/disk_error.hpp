// SPDX-License-Identifier: Apache-2.0
// The refusal for a failed operation on a disk: what failed, where, the system's reason and what an operator can do.
// Below everything else in this room, since each of its files fails in this way.
#pragma once

#include <filesystem>
#include <string>

namespace sealift::installer {

// `error` is an errno. Throws Space for a full disk or quota, Missing for ENOENT, Io for the rest.
[[noreturn]] void throw_disk_error(std::string what, const std::filesystem::path& where, int error);

}  // namespace sealift::installer
