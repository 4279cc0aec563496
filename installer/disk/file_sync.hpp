// SPDX-License-Identifier: Apache-2.0
// Replaces syncfs(2) on old kernels: before Linux 5.8 it reports success although a write failed on its way to the disk
// (commit 735e4ae5ba28, "vfs: track per-sb writeback errors", changed that). fsync of each file does report it.
#pragma once

#include <filesystem>
#include <string_view>

namespace sealift::installer {

// Whether syncfs of this kernel reports failed writes. `release` as uname(2) gives it: "4.18.0-553.el8.x86_64"; one
// that cannot be parsed counts as old.
bool syncfs_reports_failures(std::string_view release);

// Calls fsync for every plain file below `folder`, none through a symbolic link; returns how many. Throws Io or Space
// with the first path whose bytes did not reach the disk. Cheap after a syncfs, since everything is written by then.
std::uint64_t sync_each_file(const std::filesystem::path& folder);

}  // namespace sealift::installer
