// SPDX-License-Identifier: Apache-2.0
// A file for each build, named by the digest of what decides it; see build_memory.hpp.
#include "packager/builds/build_memory.hpp"

#include "packager/resolve/metadata_headers.hpp"
#include "packager/tables/toml_file.hpp"
#include "sealift/bundle/core/digest.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kMaxNote = 1 << 20;

// Length before text: no two lists of words have one spelling.
void add(std::string& key, const std::string& word) {
  key += std::to_string(word.size()) + ":" + word + ",";
}

void add(std::string& key, const std::vector<std::string>& words) {
  add(key, std::to_string(words.size()));
  for (const std::string& word : words) add(key, word);
}

bundle::Digest key_of(const bundle::Digest& archive, const BuildOrder& order, const BuildTools& tools,
                      const std::string& tool_names) {
  std::string key;
  for (const std::string& word : {std::string("1"), archive.hex(), order.name, order.version, order.scm_version,
                                  order.subdirectory, tools.python.string(), tools.python_version, tool_names,
                                  std::string(tools.isolation == Isolation::Sandbox ? "sandbox" : "none")})
    add(key, word);
  add(key, tools.build_constraints);
  add(key, tools.index_words);
  add(key, order.extras.requirements);
  for (const auto& [name, value] : order.extras.variables) add(key, {name, value});
  return bundle::sha256(bundle::as_bytes(key));
}

}  // namespace

BuildMemory::BuildMemory(const Cache& cache, const bundle::Digest& archive, const BuildOrder& order,
                         const BuildTools& tools, const std::string& tool_names)
    : cache_(cache), file_(cache.root() / "built" / (key_of(archive, order, tools, tool_names).hex() + ".toml")) {}

std::optional<RememberedBuild> BuildMemory::recall() const {
  const std::optional<std::string> note = cache_.read_note(file_, kMaxNote);
  if (!note) return std::nullopt;
  try {
    const TomlValue document = parse_toml(*note, file_, bundle::ErrorCode::Format);
    TomlTable table(document, file_, bundle::ErrorCode::Format);
    const std::optional<bundle::Digest> sha256 = bundle::Digest::from_hex(table.string("sha256"));
    RememberedBuild build{
        .file_name = table.string("file"), .sha256 = {}, .requirements = table.strings("requirements")};
    table.done();
    if (!sha256 || build.file_name.find('/') != std::string::npos) return std::nullopt;
    build.sha256 = *sha256;
    if (!cache_.contains(*sha256) || digest_of_file(cache_.path(*sha256)) != *sha256) return std::nullopt;
    return build;
  } catch (const bundle::Error&) {  // it is only a note: what it says can be found out again
    return std::nullopt;
  }
}

void BuildMemory::remember(const RememberedBuild& build) const {
  std::string text =
      "file = " + toml_quoted(build.file_name) + "\nsha256 = " + toml_quoted(build.sha256.hex()) + "\nrequirements = [";
  for (const std::string& line : build.requirements) text += "\n  " + toml_quoted(line) + ",";
  cache_.note(file_, text + "\n]\n");
}

std::optional<std::string> BuildMemory::recall_metadata() const {
  return cache_.read_note(std::filesystem::path(file_).replace_extension(".metadata"), kMaxHeaderBytes);
}

void BuildMemory::remember_metadata(const std::string& metadata) const {
  cache_.note(std::filesystem::path(file_).replace_extension(".metadata"), metadata);
}

}  // namespace sealift::packager
