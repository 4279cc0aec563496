// SPDX-License-Identifier: Apache-2.0
// A target in TOML: the one reader of its keys, whether in a profile that `sealift-install probe` printed, in a job's
// [target] or in a lock's. Profiles of common systems are built into the program.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "packager/tables/toml_file.hpp"
#include "sealift/bundle/manifest/target.hpp"

namespace sealift::packager {

// Sets in `target` the keys that `table` has. Throws the document's fault, naming file, line and key, for values that
// no machine has.
void read_target_keys(TomlTable& table, bundle::Target& target);

// The names of the checks that `overrule` lists, sorted; throws the document's fault for one that does not exist.
std::vector<std::string> read_overruled(TomlTable& table);

// `host_libraries`: names of libraries that are the target's own, `*` for any characters, and folders of this machine,
// which stand for the libraries in them, below `folder` unless they are absolute. Sorted.
std::vector<std::string> read_host_libraries(TomlTable& table, const std::filesystem::path& folder);

// Throws Usage naming file, line and key for a fault, an unknown key, and lines that do not match `check`; CannotCheck
// for a profile of another format.
bundle::Target read_profile(const std::filesystem::path& file);
bundle::Target parse_profile(std::string_view text, const std::filesystem::path& where);

// The built-in profiles: "debian-12", "kylin-v10", ... , sorted.
std::vector<std::string> shipped_profiles();
// The built-in profile of that name, or else a file relative to `folder`. Throws Missing listing the names.
bundle::Target find_profile(const std::string& name, const std::filesystem::path& folder);

}  // namespace sealift::packager
