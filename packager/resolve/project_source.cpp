// SPDX-License-Identifier: Apache-2.0
// pyproject.toml, then setup.cfg beside it; see project_source.hpp.
#include "packager/resolve/project_source.hpp"

#include <algorithm>

#include "bundle/core/text_parts.hpp"
#include "packager/tables/toml_file.hpp"
#include "sealift/bundle/core/error.hpp"
#include "sealift/bundle/core/file.hpp"
#include "sealift/bundle/wheel/wheel_name.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

bool has(const std::vector<std::string>& list, std::string_view one) {
  return std::find(list.begin(), list.end(), one) != list.end();
}

// [metadata] name of a setup.cfg.
std::string name_in_setup_cfg(const fs::path& file) {
  if (std::error_code error; !fs::is_regular_file(file, error)) return {};
  bool metadata = false;
  const std::string text = bundle::read_text(file, std::uint64_t{1} << 20);
  for (const std::string_view line : bundle::split(text, '\n')) {
    if (line.starts_with('[')) metadata = bundle::trimmed(line) == "[metadata]";
    const std::size_t equals = line.find('=');
    if (metadata && equals != line.npos && bundle::trimmed(line.substr(0, equals)) == "name")
      return std::string(bundle::trimmed(line.substr(equals + 1)));
  }
  return {};
}

bool names_folder(const std::string& requirement, const fs::path& base, const fs::path& folder) {
  std::string path = requirement.starts_with("-e ") ? requirement.substr(3) : requirement;
  if (const std::size_t at = path.find(" @ "); at != path.npos) path = path.substr(at + 3);
  path = path.substr(0, path.find_first_of("[;"));
  const std::string plain(bundle::trimmed(path));
  std::error_code error;
  return !plain.empty() && fs::is_directory(base / plain, error) && fs::equivalent(base / plain, folder, error);
}

}  // namespace

std::optional<ProjectSource> project_to_build(const Job& job) {
  if (!job.inputs.pyproject) return std::nullopt;
  const fs::path& file = *job.inputs.pyproject;
  const fs::path folder = file.parent_path();
  const TomlValue document = read_toml(file, ErrorCode::Usage);
  TomlTable root(document, file, ErrorCode::Usage);
  std::string name;
  bool readable = false;
  std::error_code error;
  if (root.has("project")) {
    TomlTable project = root.table("project");
    const std::vector<std::string> dynamic = project.strings("dynamic");
    name = project.string_or("name", "");
    readable = !has(dynamic, "dependencies") && (job.inputs.extras.empty() || !has(dynamic, "optional-dependencies"));
  } else {
    readable = !root.has("build-system") && !fs::exists(folder / "setup.py", error) &&
               !fs::exists(folder / "setup.cfg", error);
    if (root.has("tool"))
      if (TomlTable tool = root.table("tool"); tool.has("poetry")) {
        name = tool.table("poetry").string_or("name", "");
        readable = false;
      }
  }
  if (readable) return std::nullopt;
  if (name.empty()) name = name_in_setup_cfg(folder / "setup.cfg");
  if (name.empty() && job.inputs.groups.empty())
    throw Error(ErrorCode::Usage,
                {.what = "the dependencies of a project are known only to its build, and no file tells its name",
                 .where = file.string(),
                 .expected = "name in [project], [tool.poetry] or setup.cfg",
                 .next = "write \"NAME @ " + folder.string() + "\" in requirements in place of pyproject"});
  if (name.empty()) return std::nullopt;
  const fs::path base = fs::absolute(job.file).parent_path();
  const bool carried = std::any_of(job.inputs.requirements.begin(), job.inputs.requirements.end(),
                                   [&](const std::string& one) { return names_folder(one, base, folder); });
  return ProjectSource{.name = bundle::normalized_project_name(name), .folder = folder, .carried = carried};
}

}  // namespace sealift::packager
