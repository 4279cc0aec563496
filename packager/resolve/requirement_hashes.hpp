// SPDX-License-Identifier: Apache-2.0
// The hashes that requirements files demand. uv reads such files too, but `uv pip compile` ignores their hashes and
// pins what the index offers; so they are read here, and `pylock` takes only files that they allow.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sealift/bundle/core/digest.hpp"

namespace sealift::packager {

// Normalized name -> the SHA-256 digests that its file may have. A package without an entry may have any.
using RequirementHashes = std::map<std::string, std::set<bundle::Digest>>;

// The lines of a requirements file, with continued lines joined and without comments and empty lines.
std::vector<std::string> requirement_lines(std::string_view text);

// The hashes of a requirements file and of files that it includes with -r. Throws Format naming file and requirement
// when one has hashes, but no SHA-256 among them.
RequirementHashes read_requirement_hashes(const std::filesystem::path& file);

// The value of `option`, when the line is that option: "-r other.txt", "-rother.txt", "--requirement=other.txt"; else
// empty.
std::string option_value(const std::string& line, std::string_view option);

// An option that names an index, as it stands in the file; a relative path is as seen from `folder`.
struct IndexOption {
  std::string option, value;
  std::filesystem::path folder;
};

// Those of a requirements file and of the files that it includes. They may hold passwords.
std::vector<IndexOption> index_options_of(const std::filesystem::path& file);

// The options of a requirements file, and of included ones, that name further indexes to uv; without
// passwords.
std::vector<std::string> index_lines(const std::filesystem::path& file);

}  // namespace sealift::packager
