// SPDX-License-Identifier: Apache-2.0
// What uv is told of packages that come as source, so that it never has to build one to learn about it: building runs
// their code, and uv has no sandbox. A wheel that was built here in one tells what it requires.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace sealift::packager {

struct SourceMetadata {
  std::string name;  // normalized
  std::string version;
  std::vector<std::string> requires_dist, extras;
  std::string requires_python;  // may be empty
};

// A name stands in one of both sets. Neither can make uv build: of what the job names directly (a folder, a repository,
// an archive) uv may build nothing at all; of an index's package it may take the source, and has metadata for every
// version.
struct SourceFacts {
  std::set<std::string> of_indexes;
  std::set<std::string> direct;
  std::vector<SourceMetadata> built;  // what wheels told that were built; all others are taken to require nothing

  // Whether something is direct whose wheel was not built: then only what the job names is asked for.
  bool has_unknown() const;
};

// Of a wheel's METADATA. Throws Format for a value that is no line of text.
SourceMetadata metadata_of(std::string_view name, std::string_view version, std::string_view metadata);

// uv's configuration file.
std::string write_source_facts(const SourceFacts& facts);

// The arguments that go with it: no builds but for these names.
std::vector<std::string> source_words(const SourceFacts& facts);

}  // namespace sealift::packager
