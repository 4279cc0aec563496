// SPDX-License-Identifier: Apache-2.0
// Reads no more of a project than its [build-system]; see build_project.hpp.
#include "packager/builds/build_project.hpp"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>
#include <string_view>

#include "packager/builds/build_step.hpp"
#include "packager/tables/toml_file.hpp"
#include "sealift/bundle/core/output_file.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::ErrorCode;

namespace {

// A link in the source may lead anywhere, and from here on it is this program that follows it.
fs::path inside(const BuildOrder& order, const fs::path& place, const fs::path& folder) {
  const fs::path top = fs::canonical(place / "source"), real = fs::canonical(folder);
  const fs::path relative = real.lexically_relative(top);
  if (relative.empty() || *relative.begin() == "..")
    refuse_build(order, ErrorCode::Format, "the project's folder is a link out of its source", real.string());
  return folder;
}

}  // namespace

void unpack_source(const BuildOrder& order, const BuildTools& tools, const fs::path& place) {
  char magic[2] = {};
  std::ifstream(order.archive, std::ios::binary).read(magic, 2);
  const std::string into = (place / "source").string();
  const bool zip = magic[0] == 'P' && magic[1] == 'K';
  const ProcessResult result =
      run_step(tools, {.command = zip ? std::vector<std::string>{tools.python.string(), "-I", "-m", "zipfile", "-e",
                                                                 order.archive.string(), into}
                                      : std::vector<std::string>{"tar", "--no-same-owner", "--no-same-permissions",
                                                                 "-xf", order.archive.string(), "-C", into},
                       .environment = {{"PATH", kSystemPath}, {"LANG", "C.UTF-8"}},
                       .readable = with_python(tools, {order.archive}),
                       .writable = {into}});
  if (result.exit_code != 0)
    refuse_build(order, ErrorCode::Format, "the source cannot be unpacked", last_lines(result.err, 5));
}

fs::path project_of(const BuildOrder& order, const fs::path& place) {
  const fs::path top = place / "source";
  std::vector<fs::path> candidates = {top};
  if (std::distance(fs::directory_iterator(top), fs::directory_iterator()) == 1)
    candidates.push_back(*fs::directory_iterator(top));
  for (fs::path& folder : candidates) {
    if (!order.subdirectory.empty()) folder /= order.subdirectory;
    if (fs::exists(folder / "pyproject.toml") || fs::exists(folder / "setup.py")) return inside(order, place, folder);
  }
  refuse_build(order, ErrorCode::Format, "there is no Python project in the source",
               "neither pyproject.toml nor setup.py");
}

BuildSystem read_build_system(const BuildOrder& order, const fs::path& place) {
  BuildSystem system;
  system.requires_ = {"setuptools>=40.8.0"};  // PEP 517's default
  const fs::path file = project_of(order, place) / "pyproject.toml";
  if (!fs::exists(file)) return system;
  const TomlValue document = read_toml(file, ErrorCode::Format);
  TomlTable root(document, file, ErrorCode::Format);
  if (!root.has("build-system")) return system;
  TomlTable table = root.table("build-system");
  system.requires_ = table.strings("requires");
  require_plain(order, system.requires_);
  system.backend = table.string_or("build-backend", system.backend);
  system.paths = table.strings("backend-path");
  return system;
}

void require_plain(const BuildOrder& order, const std::vector<std::string>& requirements) {
  for (const std::string& one : requirements) {
    const bool named = !one.empty() && std::isalnum(static_cast<unsigned char>(one.front())) != 0 &&
                       one.find_first_of("\n\r") == one.npos;
    const std::size_t at = std::min(one.find('@'), one.size());
    const std::size_t address = std::min(one.find_first_not_of(" \t", at + 1), one.size());
    const std::string_view name = std::string_view(one).substr(0, at);
    const bool path = name.find_first_of("/\\") != name.npos || name.ends_with(".whl") || name.ends_with(".gz") ||
                      name.ends_with(".zip");  // uv takes these for files, relative to where it runs
    const bool here = at < one.size() && one.compare(address, 8, "https://") != 0;
    if (named && !path && !here) continue;
    refuse_build(order, ErrorCode::Format, "what the build requires is not the requirement of a package", one);
  }
}

}  // namespace sealift::packager
