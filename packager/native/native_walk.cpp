// SPDX-License-Identifier: Apache-2.0
// ld.so's breadth-first loading (elf/dl-deps.c, _dl_map_object_deps); see native_walk.hpp.
#include "packager/native/native_walk.hpp"

#include <algorithm>

#include "packager/libraries/dlopen_table.hpp"
#include "packager/libraries/loader_search.hpp"
#include "sealift/bundle/native/host_libraries.hpp"
#include "sealift/bundle/native/system_libraries.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kNoLoader = static_cast<std::size_t>(-1);

const std::string& name_of(const NativeFile& file, std::string& storage) {
  if (!file.elf.soname.empty()) return file.elf.soname;
  return storage = file.file_name();
}

// File -> the files that it opens by name, according to the table.
std::vector<std::vector<std::size_t>> opened_files(const NativeIndex& index) {
  std::vector<std::vector<std::size_t>> opened(index.size());
  for (std::size_t file = 0; file < index.size(); ++file) {
    std::string storage;
    const std::string& opener = name_of(index.at(file), storage);
    for (const DlopenRule& rule : dlopen_table()) {
      if (rule.opener == "*" || !matches(rule.opener, opener)) continue;
      const std::string pattern = opened_by(rule, opener);
      for (const auto& [name, files] : index.names())
        if (matches(pattern, name))
          for (const std::size_t found : files)
            if (index.fits(found)) opened[file].push_back(found);
    }
  }
  return opened;
}

// One process. Copied for each import, so that what all of them begin with is loaded once.
class Process {
 public:
  Process(const NativeIndex& index, std::span<const std::string> library_path)
      : index_(&index), library_path_(library_path) {}

  // `loader` is a position in objects_.
  void load(std::size_t file, std::size_t loader) {
    const NativeFile& loaded = index_->at(file);
    const auto [there, fresh] = files_.emplace(file, objects_.size());
    if (!fresh) return;
    objects_.push_back({file, loader});
    if (!loaded.elf.soname.empty()) names_.emplace(loaded.elf.soname, file);
  }
  void load_by_main(std::size_t file) { load(file, objects_.empty() ? kNoLoader : 0); }

  // Loads what is needed by everything that is loaded; `found` and `lost` get (who, wanted).
  template <class Found, class Lost>
  void load_needed(const Found& found, const Lost& lost) {
    for (; next_ < objects_.size(); ++next_) {
      const std::size_t who = objects_[next_].file;
      for (const std::string& wanted : index_->at(who).elf.needed) {
        if (index_->is_of_target(fs::path(wanted).filename().string())) continue;
        if (const std::optional<std::size_t> file = find(wanted, next_)) {
          names_.emplace(wanted, *file);
          found(who, wanted, *file);
          load(*file, next_);
        } else {
          lost(who, wanted);
        }
      }
    }
  }
  // Loads what the loaded files open by name, according to the table; true when that was anything new.
  bool open_by_name(const std::vector<std::vector<std::size_t>>& opened) {
    const std::size_t before = objects_.size();
    for (std::size_t i = 0; i < before; ++i)
      for (const std::size_t file : opened[objects_[i].file]) load(file, i);
    return objects_.size() > before;
  }

 private:
  struct Object {
    std::size_t file;
    std::size_t loader;
  };

  std::optional<std::size_t> find(const std::string& wanted, std::size_t by) const {
    if (const auto loaded = names_.find(wanted); loaded != names_.end()) return loaded->second;
    std::vector<LoadedObject> chain;
    for (std::size_t i = by; i != kNoLoader; i = objects_[i].loader) {
      const NativeFile& file = index_->at(objects_[i].file);
      chain.push_back({&file.elf, file.folder()});
    }
    if (wanted.find('/') != wanted.npos) {  // a path, which ld.so does not search for
      for (const std::string& path : expand_search_path(wanted, chain.front().origin, index_->arch()))
        if (const auto file = index_->find(path)) return file;
      return std::nullopt;
    }
    for (const std::string& folder : search_folders(chain, index_->arch(), library_path_))
      if (const auto file = index_->find(folder == "." ? wanted : folder + "/" + wanted)) return file;
    return std::nullopt;
  }

  const NativeIndex* index_;
  std::span<const std::string> library_path_;
  std::vector<Object> objects_;
  std::map<std::size_t, std::size_t> files_;  // -> position in objects_
  std::map<std::string, std::size_t> names_;  // a name under which something was loaded -> file
  std::size_t next_ = 0;                      // the first object whose needs were not loaded yet
};

}  // namespace

NativeIndex::NativeIndex(const NativeFiles& files, std::string arch) : files_(files), arch_(std::move(arch)) {
  for (std::size_t i = 0; i < size(); ++i) {
    paths_.emplace(at(i).path, i);
    names_[at(i).file_name()].push_back(i);
    if (!at(i).elf.soname.empty() && at(i).elf.soname != at(i).file_name()) names_[at(i).elf.soname].push_back(i);
  }
  for (const auto& [link, means] : files_.links)
    if (const auto file = find(link)) names_[link.substr(link.rfind('/') + 1)].push_back(*file);
}

std::optional<std::size_t> NativeIndex::find(const std::string& path) const {
  const std::string* step = &path;
  for (int depth = 0; depth < 16; ++depth) {
    if (const auto file = paths_.find(*step); file != paths_.end())
      return fits(file->second) ? std::optional(file->second) : std::nullopt;
    const auto link = files_.links.find(*step);
    if (link == files_.links.end()) return std::nullopt;
    step = &link->second;
  }
  return std::nullopt;
}

bool NativeIndex::is_of_target(const std::string& name) const {
  return bundle::belongs_to_target(name) || (!brings(name) && bundle::is_host_library(files_.of_host, name));
}

std::vector<std::size_t> NativeIndex::named(const std::string& name) const {
  const auto found = names_.find(name);
  return found == names_.end() ? std::vector<std::size_t>() : found->second;
}

bool NativeIndex::brings(const std::string& name) const {
  const std::vector<std::size_t> there = named(name);
  return std::any_of(there.begin(), there.end(), [&](std::size_t file) { return fits(file); });
}

NativeWalk walk_native(const NativeIndex& index, const std::string& interpreter, bool carried_runtime) {
  const std::vector<std::string> launchers_path = {"lib"};
  const auto library_path = [&](bool launched) {
    return carried_runtime && launched ? std::span(launchers_path) : std::span<const std::string>();
  };
  NativeWalk walk;
  const auto opened = opened_files(index);
  for (const std::vector<std::size_t>& files : opened) walk.opened.insert(files.begin(), files.end());
  const auto found = [&](std::size_t who, const std::string& wanted, std::size_t file) {
    walk.found.try_emplace({who, wanted}, file);
  };
  const auto ignored = [](std::size_t, const std::string&) {};
  Process imports(index, library_path(true));
  if (const auto program = index.find(interpreter)) imports.load_by_main(*program);
  imports.load_needed(found, ignored);
  for (std::size_t file = 0; file < index.size(); ++file) {
    if (!index.fits(file)) continue;
    walk.needed += index.at(file).elf.needed.size();
    if (!is_program(index.at(file))) {
      Process process = imports;
      process.load_by_main(file);
      do process.load_needed(found, ignored);
      while (process.open_by_name(opened));
      continue;
    }
    Process process(index, library_path(is_launched(index.at(file))));
    process.load_by_main(file);
    process.load_needed(found, [&](std::size_t by, const std::string& wanted) {
      walk.gaps.push_back({.program = file, .by = by, .wanted = wanted});
    });
  }
  return walk;
}

// Repeatedly removes files that need none of the remaining ones, or are needed by none of them.
std::set<std::size_t> on_cycles(const NativeWalk& walk) {
  std::map<std::size_t, std::set<std::size_t>> needs, users;
  for (const auto& [edge, provider] : walk.found) {
    if (edge.first == provider) continue;
    needs[edge.first].insert(provider);
    users[provider].insert(edge.first);
  }
  std::vector<std::size_t> leaves;
  for (const auto& [file, who] : users)
    if (!needs.contains(file)) leaves.push_back(file);
  for (const auto& [file, libraries] : needs)
    if (!users.contains(file)) leaves.push_back(file);
  while (!leaves.empty()) {
    const std::size_t leaf = leaves.back();
    leaves.pop_back();
    for (auto* one : {&needs, &users}) {
      auto& other = one == &needs ? users : needs;
      const auto gone = one->extract(leaf);
      if (gone.empty()) continue;
      for (const std::size_t neighbour : gone.mapped())
        if (const auto there = other.find(neighbour);
            there != other.end() && there->second.erase(leaf) == 1 && there->second.empty()) {
          other.erase(there);
          leaves.push_back(neighbour);
        }
    }
  }
  std::set<std::size_t> left;
  for (const auto& [file, libraries] : needs) left.insert(file);
  return left;
}

}  // namespace sealift::packager
