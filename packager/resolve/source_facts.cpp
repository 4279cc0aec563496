// SPDX-License-Identifier: Apache-2.0
// METADATA -> uv's [[dependency-metadata]]; see source_facts.hpp. uv prefers an entry of the very version to one
// without.
#include "packager/resolve/source_facts.hpp"

#include <algorithm>

#include "packager/resolve/metadata_headers.hpp"
#include "packager/tables/toml_file.hpp"
#include "sealift/bundle/core/error.hpp"
#include "sealift/bundle/wheel/wheel_name.hpp"

namespace sealift::packager {

namespace {

std::string one_line(std::string_view name, std::string value) {
  const bool control =
      std::any_of(value.begin(), value.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; });
  if (!control) return value;
  throw bundle::Error(
      bundle::ErrorCode::Format,
      {.what = "a field of METADATA holds a control character or a line break", .where = std::string(name)});
}

std::vector<std::string> lines(std::string_view name, std::vector<std::string> values) {
  for (std::string& value : values) value = one_line(name, std::move(value));
  return values;
}

std::string list(const std::vector<std::string>& texts) {
  std::string out = "[";
  for (const std::string& text : texts) out += (out.size() > 1 ? ", " : "") + toml_quoted(text);
  return out + "]";
}

std::string entry(const SourceMetadata& metadata) {
  std::string out = "[[dependency-metadata]]\nname = " + toml_quoted(metadata.name) + "\n";
  if (!metadata.version.empty()) out += "version = " + toml_quoted(metadata.version) + "\n";
  out += "requires-dist = " + list(metadata.requires_dist) + "\nprovides-extra = " + list(metadata.extras) + "\n";
  if (!metadata.requires_python.empty()) out += "requires-python = " + toml_quoted(metadata.requires_python) + "\n";
  return out;
}

// "NAME @ …" of a package that was built: then NAME is no index's package any more, and its folder could be built.
bool is_required_directly(const SourceFacts& facts, const std::string& name) {
  const auto direct = [&](const std::string& text) {
    return text.find('@') != text.npos &&
           bundle::normalized_project_name(text.substr(0, text.find_first_of(" \t[@"))) == name;
  };
  return std::any_of(facts.built.begin(), facts.built.end(), [&](const SourceMetadata& one) {
    return std::any_of(one.requires_dist.begin(), one.requires_dist.end(), direct);
  });
}

}  // namespace

SourceMetadata metadata_of(std::string_view name, std::string_view version, std::string_view metadata) {
  const MetadataHeaders headers(metadata);
  return {.name = std::string(name),
          .version = std::string(version),
          .requires_dist = lines(name, headers.all("Requires-Dist")),
          .extras = lines(name, headers.all("Provides-Extra")),
          .requires_python = one_line(name, headers.first("Requires-Python"))};
}

bool SourceFacts::knows(const std::string& name, const std::string& version) const {
  return std::any_of(built.begin(), built.end(), [&](const SourceMetadata& one) {
    return one.name == name && (version.empty() || one.version == version);
  });
}

bool SourceFacts::learn(SourceMetadata metadata) {
  const auto known = std::find_if(built.begin(), built.end(), [&](const SourceMetadata& one) {
    return one.name == metadata.name && (one.version == metadata.version || direct.contains(one.name));
  });
  if (known == built.end()) {
    built.push_back(std::move(metadata));
    return true;
  }
  if (*known == metadata) return false;
  *known = std::move(metadata);
  return true;
}

bool SourceFacts::has_unknown() const {
  return std::any_of(direct.begin(), direct.end(), [&](const std::string& name) { return !knows(name); });
}

std::string write_source_facts(const SourceFacts& facts) {
  std::string text;
  for (const SourceMetadata& metadata : facts.built) text += entry(metadata);
  for (const std::string& name : facts.direct)  // uv uses an entry for these only if it says a version
    if (!facts.knows(name)) text += entry({.name = name, .version = "0"});
  for (const std::string& name : facts.of_indexes) text += entry({.name = name, .version = {}});
  return text;
}

std::vector<std::string> source_words(const SourceFacts& facts) {
  std::vector<std::string> words = {"--only-binary", ":all:"};
  for (const std::string& name : facts.of_indexes)
    if (!is_required_directly(facts, name)) words.insert(words.end(), {"--no-binary", name});
  return words;
}

}  // namespace sealift::packager
