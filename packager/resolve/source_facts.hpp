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

  bool operator==(const SourceMetadata&) const = default;
};

// What the job names directly (a folder, a repository, an archive) and only a build can tell of is in `direct`. Where
// the job allows no builds, `of_indexes` has the packages without a wheel, for the refusal: uv may take their sources,
// which are taken to require nothing.
struct SourceFacts {
  std::set<std::string> of_indexes;
  std::set<std::string> direct;
  std::vector<SourceMetadata> built;  // what backends or wheels told

  // Whether something is known of it, in this version where one is given.
  bool knows(const std::string& name, const std::string& version = {}) const;
  // Replaces what was known of this version; true when that was something else, or nothing.
  bool learn(SourceMetadata metadata);

  // Whether something is direct whose wheel was not built: then only what the job names is asked for.
  bool has_unknown() const;
};

// For a wheel's METADATA. Throws Format unless each value is one line of text.
SourceMetadata metadata_of(std::string_view name, std::string_view version, std::string_view metadata);

// uv's configuration file.
std::string write_source_facts(const SourceFacts& facts);

// The arguments that go with it: no builds but for these names.
std::vector<std::string> source_words(const SourceFacts& facts);

}  // namespace sealift::packager
