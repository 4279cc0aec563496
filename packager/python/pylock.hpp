// SPDX-License-Identifier: Apache-2.0
// A resolution read from its pylock.toml (PEP 751): one wheel for each package, and what has to be built into one.
// Between `resolve`, which asks uv for the file, and `source_build`, which makes wheels of the rest.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "packager/job/lock.hpp"
#include "packager/python/requirement_hashes.hpp"

namespace sealift::packager {

// A package that comes as source.
struct SourcePackage {
  std::string name;
  std::string version;  // empty: only its build will tell
  SourceKind kind = SourceKind::Archive;
  std::string url;                       // of the archive or the repository; empty for a folder
  std::optional<bundle::Digest> sha256;  // of the archive
  std::string commit;                    // of a repository
  std::string subdirectory;              // where in it the project is
  std::filesystem::path folder;

  std::string title() const { return version.empty() ? name : name + " " + version; }
};

struct PythonChoice {
  std::vector<LockedWheel> wheels;     // sorted by file name
  std::vector<SourcePackage> sources;  // sorted by name
};

// Relative paths in it are relative to `where`; `allowed` narrows the files that may be taken. Throws Platform listing
// every package that neither has a wheel for the target nor a source, Digest listing every package of which no file
// is allowed, Conflict for a package that stands twice.
PythonChoice choose_packages(std::string_view pylock, const std::filesystem::path& where, std::string_view python,
                             const bundle::Target& target, const RequirementHashes& allowed = {});

// A pylock for several machines as lines of a requirements file, each with its version, marker and hashes: uv knows
// markers, but takes no pylock to resolve from.
std::vector<std::string> pylock_as_requirements(std::string_view pylock, const std::filesystem::path& where);

}  // namespace sealift::packager
