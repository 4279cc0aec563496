// SPDX-License-Identifier: Apache-2.0
// A lock on what a path names. Its holder renames or removes what it has locked, so a lock that was got on an
// open file may be one on a file that has another name by now, or none.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "sealift/bundle/core/file.hpp"

namespace sealift::bundle {

enum class Locking {
  Got,
  Held,    // another process has it
  Gone,    // the path names something else by now
  Without  // this file system has no locks
};

// Tries to lock the open `file`, which was opened by `path`; its descriptor holds the lock.
Locking try_lock(const Descriptor& file, const std::filesystem::path& path);

// `open` opens the path, and makes it where it is not. Nothing while another process holds it. Throws what `open`
// throws, and Io where the file system has no locks.
std::optional<Descriptor> lock_named(const std::filesystem::path& path, const std::function<Descriptor()>& open);

// Throws Io for a lock that `path` cannot have, by its errno; where the file system has none, with how it gets them.
[[noreturn]] void throw_no_lock(const std::string& what, const std::filesystem::path& path, int error);

}  // namespace sealift::bundle
