// SPDX-License-Identifier: Apache-2.0
// Rows and a script; see toolchain.hpp.
#include "packager/job/toolchain.hpp"

#include <algorithm>

#include "bundle/manifest/compiler_place.hpp"
#include "sealift/bundle/wheel/installed_path.hpp"
#include "sealift/bundle/wheel/wheel_name.hpp"

namespace sealift::packager {

namespace {

constexpr const char* kWheel = "ziglang";
// The newest glibc that every version of the wheel since 0.13 has; what is compiled for it runs with a newer one, too.
constexpr bundle::GlibcVersion kNewestGlibc{2, 38};

bool names_wheel(const std::string& requirement) {
  const std::size_t end =
      requirement.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-");
  return bundle::normalized_project_name(requirement.substr(0, end)) == kWheel;
}

}  // namespace

Toolchain read_toolchain(TomlTable& document) {
  Toolchain toolchain;
  if (!document.has("toolchain")) return toolchain;
  TomlTable table = document.table("toolchain");
  toolchain.c = table.boolean_or("c", false);
  table.done();
  return toolchain;
}

std::string write_toolchain(const Toolchain& toolchain) {
  return toolchain.c ? "\n[toolchain]\nc = true\n" : "";
}

std::vector<std::string> toolchain_requirements(const Toolchain& toolchain,
                                                const std::vector<std::string>& requirements) {
  if (!toolchain.c || std::any_of(requirements.begin(), requirements.end(), names_wheel)) return {};
  return {kWheel};
}

bundle::Variables toolchain_variables(const Toolchain& toolchain) {
  if (!toolchain.c) return {};
  const std::string cache = std::string(bundle::kCacheWord) + "/zig";
  return {{"CC", std::string(bundle::kPrefixWord) + "/" + std::string(bundle::kCompilerPlace)},
          {"ZIG_GLOBAL_CACHE_DIR", cache},
          {"ZIG_LOCAL_CACHE_DIR", cache}};
}

// Without a -target zig asks the host which libc it has, and for its compiler. Unlike cc, it makes programs trap on
// what C leaves undefined unless they are optimized.
std::string compiler_launcher(const bundle::Target& target, const std::string& python) {
  const bundle::GlibcVersion glibc = std::min(target.glibc, kNewestGlibc);
  return "#!/bin/sh\n"
         "# The C compiler of this environment, as CC names it: zig cc, for " +
         target.arch + " with glibc " + glibc.text() +
         " or newer.\n"
         "root=${0%/*}/../..\n"
         "if [ -z \"$ZIG_GLOBAL_CACHE_DIR\" ] && [ -z \"$XDG_CACHE_HOME\" ] && [ -z \"$HOME\" ]; then\n"
         "  echo \"cc: no place for what is compiled; set HOME or ZIG_GLOBAL_CACHE_DIR\" >&2\n"
         "  exit 1\n"
         "fi\n"
         "exec \"$root/" +
         bundle::site_packages_of(python) + "/ziglang/zig\" cc -target " + target.arch + "-linux-gnu." + glibc.text() +
         " -fno-sanitize=undefined \"$@\"\n";
}

}  // namespace sealift::packager
