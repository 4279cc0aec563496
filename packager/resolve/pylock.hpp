// SPDX-License-Identifier: Apache-2.0
// Reads a resolution from pylock.toml (PEP 751): one wheel for each package, and the sources that have to be built.
// Between `resolve`, which gets the file from uv, and `source_build`, which builds the sources.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "packager/lock/lock.hpp"
#include "packager/resolve/requirement_hashes.hpp"

namespace sealift::packager {

// A package that comes as source.
struct SourcePackage {
  std::string name;
  std::string version;  // empty: known only after the build
  SourceKind kind = SourceKind::Archive;
  std::string url;                       // of the archive or the repository; empty for a folder
  std::optional<bundle::Digest> sha256;  // of the archive
  std::string commit;                    // of a repository
  std::string subdirectory;              // of the project in it
  std::filesystem::path folder;

  std::string title() const { return version.empty() ? name : name + " " + version; }
};

// What an index has no SHA-256 of has a digest of zeros, until pin_unpinned.
struct PythonChoice {
  std::vector<LockedWheel> wheels;      // sorted by file name
  std::vector<SourcePackage> sources;   // sorted by name
  std::vector<std::string> local = {};  // addresses of files of this machine among them that an index or list named
};

// Relative paths in the text are relative to `where`; `allowed` restricts the files that may be chosen. Throws Platform
// listing every package that has neither a wheel for the target nor a source, Digest listing every package without an
// allowed file, Conflict for a package that is listed twice.
PythonChoice choose_packages(std::string_view pylock, const std::filesystem::path& where, std::string_view python,
                             const bundle::Target& target, const RequirementHashes& allowed = {});

// A pylock for several machines as lines of a requirements file, each with version, marker and hashes: uv evaluates
// markers there, but cannot resolve from a pylock, and knows no groups. Of files that lie beside the lock, which no
// index has, the best wheel for `python` and `target` is named. Groups that the lock takes by default count, and
// `groups` and `extras`; throws Usage for one that the lock does not have.
std::vector<std::string> pylock_as_requirements(std::string_view pylock, const std::filesystem::path& where,
                                                std::string_view python, const bundle::Target& target,
                                                const std::vector<std::string>& extras = {},
                                                const std::vector<std::string>& groups = {});

// The indexes that a uv.lock or a pylock names for its packages, each once, in their order; without the main one.
std::vector<std::string> indexes_of_lock(std::string_view lock);

}  // namespace sealift::packager
