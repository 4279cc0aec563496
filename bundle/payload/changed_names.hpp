// SPDX-License-Identifier: Apache-2.0
// What media and copies make of names: upper case, ";1", eight letters, a point and three, a folder around, an archive.
// Only for messages: a file is only taken under its signed name.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace sealift::bundle {

struct ChangedName {
  std::string got;   // what is there, and what has become of it
  std::string next;  // what to do
};

// For a bundle's file that is not there under its own name: whether it seems to be there under a changed one.
std::optional<ChangedName> changed_name(const std::filesystem::path& folder, const std::string& name);

// For a folder or file without a seal: what else it seems to be, and what to name or to do instead.
std::optional<ChangedName> instead_of_bundle(const std::filesystem::path& folder_or_file);

}  // namespace sealift::bundle
