// SPDX-License-Identifier: Apache-2.0
// Follows DT_NEEDED through DT_RPATH, DT_RUNPATH and the linker's folders; see native_closure.hpp and ld.so(8).
#include "packager/libraries/native_closure.hpp"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <fstream>
#include <optional>

#include "bundle/core/text_parts.hpp"
#include "packager/libraries/elf_on_disk.hpp"
#include "packager/libraries/loader_search.hpp"
#include "sealift/bundle/native/host_libraries.hpp"
#include "sealift/bundle/native/system_libraries.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::ElfFile;
using bundle::Error;
using bundle::ErrorCode;
using bundle::GlibcVersion;

namespace {

void read_conf(const fs::path& file, std::vector<fs::path>& out, int depth) {
  std::ifstream stream(file);
  for (std::string line; depth < 8 && std::getline(stream, line);) {
    line.erase(std::min(line.find('#'), line.size()));
    line = std::string(bundle::trimmed(line));
    if (line.starts_with("include ") || line.starts_with("include\t")) {
      const fs::path pattern = file.parent_path() / bundle::trimmed(std::string_view(line).substr(8));
      glob_t found{};
      if (::glob(pattern.c_str(), 0, nullptr, &found) == 0)
        for (std::size_t i = 0; i < found.gl_pathc; ++i) read_conf(found.gl_pathv[i], out, depth + 1);
      ::globfree(&found);
    } else if (line.starts_with('/')) {
      out.emplace_back(line);
    }
  }
}

std::vector<std::string> default_folders(const std::string& arch) {
  return {"lib/" + arch + "-linux-gnu", "usr/lib/" + arch + "-linux-gnu", "lib64", "usr/lib64", "lib", "usr/lib"};
}

}  // namespace

// What one file adds, kept apart until it is known to be complete.
struct NativeResolver::Walk {
  NativeClosure found;
  std::set<fs::path> visited;
  std::vector<std::string> missing;
};

std::vector<fs::path> NativeResolver::system_folders(const std::string& arch, const fs::path& conf) {
  std::vector<fs::path> out;
  read_conf(conf, out, 0);
  for (const std::string& folder : default_folders(arch)) out.emplace_back("/" + folder);
  return out;
}

std::vector<fs::path> NativeResolver::folders_of(const fs::path& system, const std::string& arch) {
  if (system.empty()) return system_folders(arch);
  std::vector<fs::path> out;
  for (const std::string& folder : default_folders(arch)) out.push_back(system / folder);
  return out;
}

std::vector<std::string> NativeResolver::add(const fs::path& file, const std::string& name) {
  Walk walk;
  visit(file, name, {}, walk);
  if (walk.missing.empty()) merge(walk);
  return walk.missing;
}

std::vector<std::string> NativeResolver::add_program(const fs::path& file, const std::string& name) {
  Walk walk;
  visit(file, name, {}, walk);
  std::vector<std::string> from_wheels(walk.found.from_wheels.begin(), walk.found.from_wheels.end());
  from_wheels.insert(from_wheels.end(), walk.missing.begin(), walk.missing.end());
  merge(walk);
  return from_wheels;
}

bool NativeResolver::is_of_host(const std::string& library) const {
  return bundle::is_host_library(of_host_, library);
}

bool NativeResolver::offer_library(const std::string& library, GlibcVersion newest) {
  Walk walk;
  visit_needed(library, {}, ElfFile{}, {}, walk);
  const auto too_new = [newest](const NativeNeed& need) { return newest < need.glibc; };
  if (!walk.missing.empty() || std::any_of(walk.found.needs.begin(), walk.found.needs.end(), too_new)) return false;
  merge(walk);
  return true;
}

void NativeResolver::merge(const Walk& walk) {
  closure_.libraries.insert(walk.found.libraries.begin(), walk.found.libraries.end());
  closure_.from_wheels.insert(walk.found.from_wheels.begin(), walk.found.from_wheels.end());
  for (const NativeNeed& need : walk.found.needs) {
    const auto same = [&](const NativeNeed& other) { return other.who == need.who; };
    if (std::none_of(closure_.needs.begin(), closure_.needs.end(), same)) closure_.needs.push_back(need);
  }
}

void NativeResolver::visit(const fs::path& file, const std::string& name, const std::string& inherited_rpath,
                           Walk& walk) {
  if (!walk.visited.insert(fs::canonical(file)).second) return;
  const std::optional<ElfFile> elf = read_elf_file(file);
  if (!elf) return;
  if (elf->arch != arch_)
    throw Error(ErrorCode::Platform, {.what = "a program or library is of another architecture: " + name,
                                      .where = file.string(),
                                      .expected = arch_,
                                      .got = elf->arch,
                                      .next = "use one that was built for the target"});
  walk.found.needs.push_back({.who = name, .glibc = elf->glibc_floor().value_or(GlibcVersion{})});
  for (const std::string& library : elf->needed) visit_needed(library, file, *elf, inherited_rpath, walk);
}

// ld.so: DT_RUNPATH applies to the object's own needs only; without it DT_RPATH applies, and is inherited.
void NativeResolver::visit_needed(const std::string& wanted, const fs::path& by, const ElfFile& elf,
                                  const std::string& inherited_rpath, Walk& walk) {
  const std::string origin = by.empty() ? std::string() : fs::canonical(by).parent_path().string();
  // A name with '/' is a path, which may start with $ORIGIN; it is carried under its file name.
  const std::string library = fs::path(wanted).filename().string();
  if (bundle::belongs_to_target(library) || is_of_host(library) || walk.found.libraries.contains(library)) return;
  std::string rpath;  // with $ORIGIN replaced, which means the folder of this object
  for (const std::string& folder : expand_search_path(elf.rpath, origin, arch_)) rpath += folder + ":";
  rpath += inherited_rpath;
  std::vector<std::string> first = expand_search_path(elf.runpath.empty() ? rpath : elf.runpath, origin, arch_);
  if (wanted.find('/') != wanted.npos)
    first = {fs::path(expand_search_path(wanted, origin, arch_).front()).parent_path().string()};
  const fs::path found = find(library, first);
  if (found.empty()) {
    if (std::find(walk.missing.begin(), walk.missing.end(), library) == walk.missing.end())
      walk.missing.push_back(library);
    return;
  }
  if (fs::canonical(found).string().find("/site-packages/") != std::string::npos) {
    walk.found.from_wheels.insert(library);  // a wheel brings it, with everything that it needs in turn
    return;
  }
  walk.found.libraries.emplace(library, found);
  visit(found, found.string(), rpath, walk);
}

fs::path NativeResolver::find(const std::string& library, const std::vector<std::string>& first) const {
  std::vector<fs::path> candidates;
  for (const std::string& folder : first) candidates.push_back(fs::path(folder) / library);
  for (const fs::path& folder : folders_) candidates.push_back(folder / library);
  for (const fs::path& candidate : candidates) {
    std::error_code error;
    if (!fs::is_regular_file(candidate, error)) continue;
    const std::optional<ElfFile> elf = read_elf_file(candidate);
    if (elf && elf->arch == arch_) return candidate;  // ld.so skips other architectures too
  }
  return {};
}

GlibcVersion check_glibc_floor(const std::vector<NativeNeed>& needs, GlibcVersion target) {
  GlibcVersion floor{2, 17};  // the oldest that today's wheels are built for
  std::string too_new;
  for (const NativeNeed& need : needs) {
    floor = std::max(floor, need.glibc);
    if (target < need.glibc) too_new += fmt::format("\n              {} needs {}", need.who, need.glibc.text());
  }
  if (!too_new.empty())
    throw Error(ErrorCode::Platform,
                {.what = "some files need a newer glibc than the target has",
                 .expected = "glibc " + target.text() + " or older",
                 .got = too_new.substr(too_new.find_first_not_of("\n ")),
                 .next = "raise [target].glibc if the targets allow it, take ones that were built on an older "
                         "distribution (libraries: from the root of one, [target] system = \"DIR\"), say of a library "
                         "that the targets have it, [target] host_libraries = [\"NAME\"], or carry this machine's "
                         "glibc: [target] runtime = \"carried\""});
  return floor;
}

}  // namespace sealift::packager
