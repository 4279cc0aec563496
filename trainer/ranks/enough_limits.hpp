// SPDX-License-Identifier: Apache-2.0
// Whether this account and its container let the ranks open their files and start their threads.
// Asked before ranks meet, in the process that starts them and in each rank: what a rank cannot open or start later
// leaves the others waiting for it, and its message names neither the limit nor the need.
// Files are counted, threads are started: who counts against their limit is the kernel's to say.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace sealift::trainer {

/// What a process opens that is, or starts, ranks of a job of `world_size`.
std::int64_t files_needed(std::int64_t world_size);

/// What `ranks` start with `threads` each.
std::int64_t threads_needed(std::int64_t ranks, std::int64_t threads);

/// Lets this process open `files` files, where it may; throws std::runtime_error with the limit and the need where not.
void require_files(std::int64_t files);

/// Throws std::runtime_error unless `threads` more threads can be started now, with the limits that there are.
/// `root`: of the files that the kernel offers.
void require_threads(std::int64_t threads, const std::filesystem::path& root = "/");

/// The limits of processes and threads that hold for this process, for people; empty where there are none.
std::string limits_of_threads(const std::filesystem::path& root);

}  // namespace sealift::trainer
