// SPDX-License-Identifier: Apache-2.0
// ld.so's order; see loader_search.hpp. Folders for newer processors (glibc-hwcaps) are left out: they only hold second
// copies, and what must start everywhere has to lie in the folder itself.
#include "packager/libraries/loader_search.hpp"

#include <algorithm>
#include <filesystem>

namespace sealift::packager {

namespace {

// `text` with every $NAME and ${NAME} replaced.
std::string replaced(std::string text, const std::string& name, const std::string& value) {
  for (const std::string& token : {"${" + name + "}", "$" + name})
    for (std::size_t at = text.find(token); at != text.npos; at = text.find(token, at + value.size()))
      text.replace(at, token.size(), value);
  return text;
}

}  // namespace

std::vector<std::string> expand_search_path(std::string_view text, const std::string& origin, const std::string& arch) {
  std::vector<std::string> folders;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(':', begin), text.size());
    std::string folder(text.substr(begin, end - begin));
    begin = end + 1;
    if (folder.empty()) continue;
    folder = replaced(replaced(folder, "ORIGIN", origin), "PLATFORM", arch);
    for (const std::string& lib : {std::string("lib64"), "lib/" + arch + "-linux-gnu", std::string("lib")}) {
      std::string one = std::filesystem::path(replaced(folder, "LIB", lib)).lexically_normal().string();
      if (one.size() > 1 && one.ends_with('/')) one.pop_back();
      if (std::find(folders.begin(), folders.end(), one) == folders.end()) folders.push_back(std::move(one));
    }
  }
  return folders;
}

std::vector<std::string> search_folders(std::span<const LoadedObject> chain, const std::string& arch,
                                        std::span<const std::string> library_path) {
  if (chain.empty()) return {};
  std::vector<std::string> folders;
  const std::string& runpath = chain.front().elf->runpath;
  for (const LoadedObject& object : chain) {
    if (!runpath.empty()) break;
    if (!object.elf->runpath.empty()) continue;
    for (std::string& folder : expand_search_path(object.elf->rpath, object.origin, arch))
      folders.push_back(std::move(folder));
  }
  folders.insert(folders.end(), library_path.begin(), library_path.end());
  for (std::string& folder : expand_search_path(runpath, chain.front().origin, arch))
    folders.push_back(std::move(folder));
  return folders;
}

}  // namespace sealift::packager
