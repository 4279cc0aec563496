// SPDX-License-Identifier: Apache-2.0
// One list of names for all four places; see ignored_settings.hpp. A file that cannot be read sets nothing.
#include "packager/resolve/ignored_settings.hpp"

#include <algorithm>
#include <cstdlib>
#include <set>

#include "bundle/core/text_parts.hpp"
#include "packager/host/uv.hpp"
#include "packager/tables/toml_file.hpp"
#include "sealift/bundle/core/file.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kMostSettings = std::uint64_t{1} << 20;

// Names as configuration files have them, and what says the same in the job's [python].
struct Setting {
  std::string_view name;
  const char* instead;
};
constexpr Setting kSettings[] = {{"index-url", "default_index"},
                                 {"extra-index-url", "indexes"},
                                 {"index", "indexes"},
                                 {"default-index", "default_index"},
                                 {"find-links", "a requirements_file with --find-links"},
                                 {"no-index", "default_index"},
                                 {"index-strategy", "index_strategy"},
                                 {"constraint", "constraints"},
                                 {"constraint-dependencies", "constraints"},
                                 {"build-constraint", "build_constraints"},
                                 {"build-constraint-dependencies", "build_constraints"},
                                 {"override", "constraints, or excludes"},
                                 {"override-dependencies", "constraints, or excludes"},
                                 {"exclude-dependencies", "excludes"},
                                 {"exclude-newer", "constraints"},
                                 {"exclude-newer-package", "constraints"},
                                 {"pre", "a requirement with a pre-release in it"},
                                 {"prerelease", "a requirement with a pre-release in it"},
                                 {"resolution", "constraints"},
                                 {"fork-strategy", "constraints"},
                                 {"no-binary", "requirements that name the source"},
                                 {"no-binary-package", "requirements that name the source"},
                                 {"only-binary", "build = false"},
                                 {"no-build", "build = false"},
                                 {"no-build-package", "constraints"},
                                 {"prefer-binary", "constraints"},
                                 {"dependency-metadata", "constraints"},
                                 {"extra-build-dependencies", "extra_build_dependencies"},
                                 {"extra-build-variables", "extra_build_variables"},
                                 {"torch-backend", "torch_backend"}};

const Setting* setting_of(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  const auto found =
      std::find_if(std::begin(kSettings), std::end(kSettings), [&](const Setting& one) { return one.name == name; });
  return found == std::end(kSettings) ? nullptr : found;
}

std::string sentence(const std::string& where, const std::string& name, const Setting& setting) {
  return where + name + " decides nothing here: the job does, in [python] (" + setting.instead + ")";
}

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string text_of(const fs::path& file) {
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return {};
  try {
    return bundle::read_text(file, kMostSettings);
  } catch (const bundle::Error&) {
    return {};
  }
}

// NAME = VALUE in any section.
void add_pip_conf(const fs::path& file, std::vector<std::string>& told) {
  std::set<std::string> seen;
  const std::string text = text_of(file);
  for (const std::string_view line : bundle::split(text, '\n')) {
    const std::size_t end = line.find_first_of("=:");
    if (end == line.npos || line.front() == '#' || line.front() == ';') continue;
    const std::string name(bundle::trimmed(line.substr(0, end)));
    if (const Setting* const setting = setting_of(name); setting != nullptr && seen.insert(name).second)
      told.push_back(sentence(file.string() + ": ", name, *setting));
  }
}

void add_table(const fs::path& file, const TomlValue& table, std::vector<std::string>& told) {
  for (const auto& [name, value] : table.members)
    if (const Setting* const setting = setting_of(name); setting != nullptr)
      told.push_back(sentence(file.string() + ": ", name, *setting));
  if (const auto pip = table.members.find("pip"); pip != table.members.end()) add_table(file, pip->second, told);
}

// uv.toml, or [tool.uv] of a pyproject.toml.
void add_uv_file(const fs::path& file, std::vector<std::string>& told) {
  const std::string text = text_of(file);
  if (text.empty()) return;
  try {
    const TomlValue document = parse_toml(text, file, bundle::ErrorCode::Usage);
    if (file.filename() == "uv.toml") return add_table(file, document, told);
    const auto tool = document.members.find("tool");
    if (tool == document.members.end()) return;
    if (const auto uv = tool->second.members.find("uv"); uv != tool->second.members.end())
      add_table(file, uv->second, told);
  } catch (const bundle::Error&) {  // uv says so, where it reads it
  }
}

}  // namespace

std::vector<std::string> ignored_settings(const Job& job) {
  std::vector<std::string> told;
  for (const std::string& name : ignored_uv_variables())
    told.push_back(name + " is set and is not passed on to uv: the job decides, in [python]");
  for (char** entry = environ; *entry != nullptr; ++entry) {
    std::string name = std::string(*entry).substr(0, std::string_view(*entry).find('='));
    if (!name.starts_with("PIP_")) continue;
    std::string lower = name.substr(4);
    std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
    if (const Setting* const setting = setting_of(lower)) told.push_back(sentence("the variable ", name, *setting));
  }
  const fs::path home = variable("HOME"), xdg = variable("XDG_CONFIG_HOME");
  const fs::path own = xdg.empty() ? home / ".config" : xdg;
  for (const fs::path& file : {fs::path("/etc/pip.conf"), fs::path("/etc/xdg/pip/pip.conf"), home / ".pip/pip.conf",
                               own / "pip/pip.conf", fs::path(variable("PIP_CONFIG_FILE"))})
    add_pip_conf(file, told);
  const fs::path folder = fs::absolute(job.file).parent_path();
  for (const fs::path& file : {fs::path("/etc/uv/uv.toml"), own / "uv/uv.toml", folder / "uv.toml"})
    add_uv_file(file, told);
  if (job.inputs.pyproject) add_uv_file(*job.inputs.pyproject, told);
  return told;
}

}  // namespace sealift::packager
