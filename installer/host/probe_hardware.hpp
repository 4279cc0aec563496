// SPDX-License-Identifier: Apache-2.0
// The part of `probe` that reads /proc and /sys: processor, GPUs, driver. Each function takes the root folder of the
// host's file system and leaves out what it cannot read.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sealift/bundle/manifest/target.hpp"

namespace sealift::installer {

// The beginning of a small file or one of /proc, at most 64 KiB; empty when it cannot be read.
std::string head_of(const std::filesystem::path& file);

// `text` reduced to what a profile may hold: printable, short, without quotes.
std::string profile_text(std::string_view text);

// Bytes that the file system of /dev/shm can hold; nothing when none is mounted there.
std::optional<std::uint64_t> probe_shared_memory(const std::filesystem::path& root);

// Fills cpu, flags, gpus and driver.
void probe_hardware(const std::filesystem::path& root, bundle::Target& target);

}  // namespace sealift::installer
