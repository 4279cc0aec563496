// SPDX-License-Identifier: Apache-2.0
// A target as people and programs write it down: the one reader of its keys, wherever they stand (a profile that
// `sealift-install probe` printed, a job's [target], a lock's). Profiles of common systems are built into the program.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "packager/job/toml_file.hpp"
#include "sealift/bundle/manifest/target.hpp"

namespace sealift::packager {

// Takes over the keys that `table` has; the others stay as they are. Throws the document's fault, naming file, line and
// key, for values that no machine has.
void read_target_keys(TomlTable& table, bundle::Target& target);

// Throws Usage naming file, line and key: for a fault, for an unknown key, and for lines that do not give their check.
// CannotCheck for a profile of another format.
bundle::Target read_profile(const std::filesystem::path& file);
bundle::Target parse_profile(std::string_view text, const std::filesystem::path& where);

// Those that come with the program: "debian-12", "kylin-v10", ... , sorted.
std::vector<std::string> shipped_profiles();
// A name of those, or else a file relative to `folder`. Throws Missing listing the names when it is neither.
bundle::Target find_profile(const std::string& name, const std::filesystem::path& folder);

}  // namespace sealift::packager
