// SPDX-License-Identifier: Apache-2.0
// Asks uv for each of them once more, without pre-releases; see prereleases.hpp.
#include "packager/resolve/prereleases.hpp"

#include <algorithm>
#include <cctype>

#include "bundle/host/scratch_folder.hpp"
#include "packager/host/uv.hpp"
#include "packager/tables/toml_file.hpp"
#include "sealift/bundle/core/output_file.hpp"
#include "sealift/bundle/wheel/wheel_name.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;

namespace {

bool speaks_of(const std::vector<std::string>& lines, const std::string& version) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return line.find(version) != line.npos; });
}

std::vector<std::string> unasked_prereleases(const std::string& pylock, const Job& job) {
  std::vector<std::string> names;
  try {
    const TomlValue document = parse_toml(pylock, "pylock.toml", bundle::ErrorCode::Format);
    TomlTable root(document, "pylock.toml", bundle::ErrorCode::Format);
    for (TomlTable& package : root.tables("packages")) {
      const std::string version = package.string_or("version", "");
      if (is_prerelease(version) && !speaks_of(job.inputs.requirements, version) &&
          !speaks_of(job.inputs.constraints, version))
        names.push_back(bundle::normalized_project_name(package.string("name")));
    }
  } catch (const bundle::Error&) {  // its next reader says what is wrong with it
    return {};
  }
  return names;
}

}  // namespace

bool is_prerelease(const std::string& version) {
  std::string text = version.substr(0, version.find('+'));
  if (const std::size_t post = text.find(".post"); post != text.npos) text.erase(post, std::string(".post").size());
  return std::any_of(text.begin(), text.end(), [](unsigned char c) { return std::isalpha(c) != 0; });
}

std::vector<std::string> released_as_sources(const std::string& pylock, const Job& job, const fs::path& uv,
                                             const UvPython& python, SourceFacts& facts) {
  std::vector<std::string> fresh;
  if (job.inputs.lock_file) return fresh;
  const bundle::ScratchFolder scratch("sealift-prereleases");
  for (const std::string& name : unasked_prereleases(pylock, job)) {
    if (facts.of_indexes.contains(name) || facts.direct.contains(name)) continue;
    const fs::path asked = scratch.path() / (name + ".in");
    bundle::write_text(asked, name + "\n");
    std::vector<std::string> command = {uv.string(), "pip", "compile", asked.string()};
    for (const std::string& word : index_words(job.inputs)) command.push_back(word);
    command.insert(command.end(),
                   {"--no-deps", "--only-binary", ":all:", "--prerelease", "disallow", "--python-version",
                    python.version(), "--python", python.path().string(), "--quiet"});
    const ProcessResult result = run_uv(command);
    if (result.exit_code == 0 || result.err.find("Wheels are required for `" + name + "`") == std::string::npos)
      continue;  // it has a release with a wheel, which others rule out; or it has pre-releases alone
    facts.of_indexes.insert(name);
    fresh.push_back(name);
  }
  return fresh;
}

}  // namespace sealift::packager
