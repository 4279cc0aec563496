// SPDX-License-Identifier: Apache-2.0
// Where a server that nobody looks at says what was wrong: one line for each fault, in a file or in the system's log.
#pragma once

#include <filesystem>
#include <mutex>
#include <set>
#include <string>

#include "sealift/bundle/core/file.hpp"

namespace sealift::installer {

// Safe from several threads.
class MountLog {
 public:
  // Appends to `file`, which is made if it is missing; empty: the system's log. Throws Io where it cannot be opened.
  explicit MountLog(const std::filesystem::path& file);

  // A line with the time; what was said before is not said again.
  void say(const std::string& text);

 private:
  static constexpr std::size_t kMostSaid = 10'000;  // different lines

  bundle::Descriptor file_;
  std::mutex guard_;
  std::set<std::string> said_;
};

}  // namespace sealift::installer
