// SPDX-License-Identifier: Apache-2.0
#include "packager/builds/cuda_toolkit.hpp"

#include <set>

#include "sealift/bundle/core/version.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Version;

namespace {

Version release_of(const std::string& version) {
  const Version whole = Version::leading(version);
  return {.major = whole.major, .minor = whole.minor};
}

}  // namespace

fs::path cuda_toolkit(const fs::path& site_packages) {
  const fs::path nvidia = site_packages / "nvidia";
  if (!fs::is_directory(nvidia)) return {};
  for (const fs::directory_entry& entry : fs::directory_iterator(nvidia))
    if (fs::exists(entry.path() / "bin/nvcc")) return entry.path();
  return {};
}

void link_libraries(const fs::path& toolkit) {
  const fs::path folder = toolkit / "lib";
  if (!fs::is_directory(folder)) return;
  std::set<std::string> names;  // sorted: which of libx.so.1 and libx.so.1.2 is linked does not depend on the disk
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    names.insert(entry.path().filename().string());
  for (const std::string& name : names) {
    const std::size_t ending = name.find(".so.");
    if (ending == name.npos) continue;
    const fs::path link = folder / name.substr(0, ending + 3);
    if (!fs::exists(fs::symlink_status(link))) fs::create_symlink(name, link);
  }
  if (!fs::exists(fs::symlink_status(toolkit / "lib64"))) fs::create_directory_symlink("lib", toolkit / "lib64");
}

std::string NewerCompiler::requirement() const {
  return "nvidia-nvvm==" + release_of(nvcc).text() + ".*";
}

std::optional<NewerCompiler> newer_compiler(const std::map<std::string, std::string>& versions) {
  const auto nvcc = versions.find("nvidia-cuda-nvcc"), nvvm = versions.find("nvidia-nvvm");
  if (nvcc == versions.end() || nvvm == versions.end()) return std::nullopt;
  if (release_of(nvvm->second) <= release_of(nvcc->second)) return std::nullopt;
  return NewerCompiler{.nvcc = nvcc->second, .nvvm = nvvm->second};
}

}  // namespace sealift::packager
