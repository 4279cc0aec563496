// SPDX-License-Identifier: Apache-2.0
// Follows NEEDED through the folders that the files name; see library_folders.hpp.
// More generous than ld.so: a folder that one file names serves all, so nothing that ld.so would find is left out.
#include "packager/libraries/library_folders.hpp"

#include <algorithm>

#include "packager/libraries/elf_on_disk.hpp"
#include "packager/libraries/loader_search.hpp"
#include "sealift/bundle/core/error.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMostLibraries = 10'000;

bool is_of_system(const fs::path& folder) {
  const std::string text = folder.string() + "/";
  for (const char* root : {"/usr/", "/lib/", "/lib64/"})
    if (text.starts_with(root)) return true;
  return false;
}

struct LibraryWalk {
  const std::string& arch;
  std::vector<fs::path> named;  // in the order in which they were met
  std::set<fs::path> holding;
  std::set<fs::path> seen;
  std::vector<fs::path> waiting;
  std::set<std::string> unfound;  // a later file may name the folder

  void name(const fs::path& folder) {
    std::error_code none;
    if (fs::is_directory(folder, none) && std::find(named.begin(), named.end(), folder) == named.end())
      named.push_back(folder);
  }

  bool find(const std::string& library) {
    for (const fs::path& folder : named) {
      std::error_code none;
      const fs::path file = folder / library;
      if (!fs::is_regular_file(file, none)) continue;
      holding.insert(folder);
      const fs::path real = fs::canonical(file, none);  // SONAMEs are links, perhaps into another folder
      if (!none) holding.insert(real.parent_path());
      waiting.push_back(file);
      return true;
    }
    return false;
  }

  void read(const fs::path& file) {
    if (seen.size() >= kMostLibraries || !seen.insert(fs::canonical(file)).second) return;
    const auto elf = read_elf_file(file);
    if (!elf) return;
    const std::string origin = fs::canonical(file).parent_path().string();
    for (const std::string& text : {elf->rpath, elf->runpath})
      for (const std::string& folder : expand_search_path(text, origin, arch)) name(folder);
    unfound.insert(elf->needed.begin(), elf->needed.end());
    std::erase_if(unfound, [&](const std::string& library) { return find(library); });
  }
};

}  // namespace

std::set<fs::path> library_folders(const fs::path& program, const std::string& arch,
                                   const std::vector<fs::path>& also) {
  if (!fs::is_regular_file(program))
    throw bundle::Error(bundle::ErrorCode::Missing,
                        {.what = "a program is not there", .where = program.string(), .next = "name one that is"});
  LibraryWalk walk{.arch = arch, .named = {}, .holding = {}, .seen = {}, .waiting = {}, .unfound = {}};
  for (const fs::path& folder : also) walk.name(fs::absolute(folder).lexically_normal());
  walk.read(program);
  walk.holding.insert(walk.named.begin(), walk.named.end());  // it may open more of them by name
  while (!walk.waiting.empty()) {
    const fs::path file = walk.waiting.back();
    walk.waiting.pop_back();
    walk.read(file);
  }
  std::erase_if(walk.holding, is_of_system);
  return walk.holding;
}

}  // namespace sealift::packager
