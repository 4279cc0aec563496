// SPDX-License-Identifier: Apache-2.0
// What syncfs leaves unsaid on old kernels: before Linux 5.8 it answers "done" although a write failed on its way to
// the disk (reported since commit 735e4ae5ba28, "vfs: track per-sb writeback errors"); each file's own fsync does say
// so.
#pragma once

#include <filesystem>
#include <string_view>

namespace sealift::installer {

// `release` as uname(2) gives it: "4.18.0-553.el8.x86_64". What cannot be read counts as old.
bool syncfs_tells_of_failures(std::string_view release);

// fsync of every plain file below `folder`, none through a symbolic link; says how many. Throws Io, or Space, with the
// first path whose bytes did not reach the disk. Costs little behind a syncfs, when all is written.
std::uint64_t sync_each_file(const std::filesystem::path& folder);

}  // namespace sealift::installer
