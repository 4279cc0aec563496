// SPDX-License-Identifier: Apache-2.0
// The order makes one process enough: a library that finds its dependencies only through a path that its package sets
// up finds them here by their SONAME, since they were loaded before.
#include "installer/trial/elf_files.hpp"

#include <elf.h>

#include <deque>
#include <optional>

#include "sealift/bundle/native/elf.hpp"

namespace sealift::installer {

namespace {

struct Native {
  ElfPlace place;
  std::vector<std::string> needed;
};

std::optional<bundle::ElfFile> elf_at(const std::filesystem::path& path) {
  try {
    bundle::FileSource source(path);
    return bundle::read_elf(source);
  } catch (const bundle::Error&) {
    return std::nullopt;
  }
}

std::vector<Native> natives_of(const Layout& layout, const std::filesystem::path& generation, const std::string& arch) {
  std::vector<Native> natives;
  for (const auto& [path, place] : layout) {
    if (place.type != Place::Type::File || place.file.size < sizeof(Elf64_Ehdr)) continue;
    const std::optional<bundle::ElfFile> elf = elf_at(generation / path);
    if (!elf || !elf->dynamic || elf->arch != arch) continue;
    const std::string name = path.substr(path.rfind('/') + 1);
    const bool program = !elf->interpreter.empty() && name.find(".so") == name.npos;
    const bool is_static = elf->interpreter.empty() && elf->needed.empty() && elf->soname.empty() &&
                           place.file.executable && name.find(".so") == name.npos;  // such as sealift-start
    if (is_static || (program ? !place.file.executable : elf->type != ET_DYN)) continue;
    natives.push_back({.place = {.path = path, .program = program, .soname = elf->soname.empty() ? name : elf->soname},
                       .needed = elf->needed});
  }
  return natives;
}

}  // namespace

std::vector<ElfPlace> elf_files(const Layout& layout, const std::filesystem::path& generation,
                                const std::string& arch) {
  std::vector<Native> natives = natives_of(layout, generation, arch);
  std::multimap<std::string, std::size_t> by_soname;
  for (std::size_t i = 0; i < natives.size(); ++i)
    if (!natives[i].place.program) by_soname.emplace(natives[i].place.soname, i);
  std::vector<std::size_t> waits_for(natives.size());  // how many of its dependencies are not in the list yet
  std::vector<std::vector<std::size_t>> waiting(natives.size());
  for (std::size_t i = 0; i < natives.size(); ++i)
    for (const std::string& name : natives[i].needed) {
      const auto [begin, end] = by_soname.equal_range(name);
      for (auto found = begin; found != end; ++found) {
        natives[found->second].place.needed = true;
        if (found->second == i) continue;
        ++waits_for[i];
        waiting[found->second].push_back(i);
      }
    }
  std::vector<ElfPlace> libraries, programs;
  std::vector<bool> taken(natives.size());
  std::deque<std::size_t> ready;
  const auto take = [&](std::size_t i) {
    taken[i] = true;
    (natives[i].place.program ? programs : libraries).push_back(natives[i].place);
    for (const std::size_t next : waiting[i])
      if (--waits_for[next] == 0 && !taken[next]) ready.push_back(next);
  };
  for (std::size_t i = 0; i < natives.size(); ++i)
    if (waits_for[i] == 0) ready.push_back(i);
  for (std::size_t first_of_cycle = 0;;) {
    for (; !ready.empty(); ready.pop_front())
      if (!taken[ready.front()]) take(ready.front());
    while (first_of_cycle < natives.size() && taken[first_of_cycle]) ++first_of_cycle;
    if (first_of_cycle == natives.size()) break;
    take(first_of_cycle);
  }
  libraries.insert(libraries.end(), programs.begin(), programs.end());
  return libraries;
}

}  // namespace sealift::installer
