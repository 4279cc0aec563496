// SPDX-License-Identifier: Apache-2.0
// Nothing is compared below a path that should be a folder and is not: a link there would lead to other files.
// A digest belongs to a file, not to a name. Each name is compared with what it should be, since a good file can stand
// in the wrong place.
#include "installer/doctor/compare_tree.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "sealift/bundle/core/file.hpp"
#include "sealift/bundle/core/parallel_for.hpp"

namespace sealift::installer {

namespace fs = std::filesystem;
using Kind = Deviation::Kind;

struct TreeComparer::FoundPath {
  fs::path path;
  const Place* place = nullptr;
  struct stat status {};
  std::string fault;  // why it could not be read
};

namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20;

std::string mode_text(mode_t mode) {
  char text[16];
  std::snprintf(text, sizeof text, "mode %04o", mode & 07777);
  return text;
}

std::string kind_text(mode_t mode) {
  return S_ISREG(mode) ? "a file" : S_ISDIR(mode) ? "a folder" : S_ISLNK(mode) ? "a symbolic link" : "something else";
}

std::string_view expected_kind(const Place& place) {
  return place.type == Place::Type::Folder ? "a folder"
         : place.type == Place::Type::Link ? "a symbolic link"
                                           : "a file";
}

mode_t expected_mode(const Place& place) {
  return place.type == Place::Type::Folder || place.file.executable ? (place.type == Place::Type::Folder ? 0755 : 0555)
                                                                    : 0444;
}

// `path` lies below one of these folders.
bool is_below(const std::string& path, const std::set<std::string>& folders) {
  if (folders.empty()) return false;
  for (std::size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1))
    if (folders.contains(path.substr(0, slash))) return true;
  return false;
}

}  // namespace

std::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::Changed:
      return "changed";
    case Kind::Missing:
      return "missing";
    case Kind::Extra:
      return "extra";
    case Kind::Mode:
      return "mode";
    case Kind::Owner:
      return "owner";
    case Kind::Unknown:
      return "unknown";
    case Kind::Outside:
      return "outside";
    case Kind::Broken:
      return "broken";
  }
  return "unknown";
}

std::string TreeComparer::below_prefix(const fs::path& path) const {
  return path.lexically_relative(prefix_.folder()).generic_string();
}

void TreeComparer::compare(const std::vector<ExpectedTree>& trees) {
  std::vector<FoundPath> paths;
  for (const ExpectedTree& tree : trees) {
    compare_paths(tree, paths);
    find_extra(tree);
  }
  hash_files(paths);
  for (const FoundPath& seen : paths) compare_contents(seen);
}

// Reports what lstat shows, and collects the files and links, whose contents are compared later.
void TreeComparer::compare_paths(const ExpectedTree& tree, std::vector<FoundPath>& paths) {
  std::set<std::string> no_folders;
  const auto compare_path = [&](const std::string& path, const Place& place) {
    FoundPath seen{.path = path.empty() ? tree.folder : tree.folder / path, .place = &place};
    const bool is_file = place.type == Place::Type::File || place.type == Place::Type::Text;
    if (is_file) ++files_;
    const bool hidden = is_below(path, no_folders);
    if (hidden || ::lstat(seen.path.c_str(), &seen.status) != 0) {
      const bool missing = hidden || errno == ENOENT;
      if (place.type == Place::Type::Folder) no_folders.insert(path);
      add({.kind = missing ? Kind::Missing : Kind::Unknown,
           .paths = {below_prefix(seen.path)},
           .expected = std::string(expected_kind(place)),
           .got = missing ? "nothing" : std::strerror(errno)});
      return;
    }
    const mode_t mode = seen.status.st_mode;
    const bool as_expected = place.type == Place::Type::Folder ? S_ISDIR(mode)
                             : place.type == Place::Type::Link ? S_ISLNK(mode)
                                                               : S_ISREG(mode);
    if (!as_expected) {
      if (place.type == Place::Type::Folder) no_folders.insert(path);
      add({.kind = Kind::Changed,
           .paths = {below_prefix(seen.path)},
           .expected = std::string(expected_kind(place)),
           .got = kind_text(mode)});
    } else if (is_file || place.type == Place::Type::Link) {
      paths.push_back(std::move(seen));
    } else if (seen.status.st_uid != owner_) {
      add({.kind = Kind::Owner,
           .paths = {below_prefix(seen.path)},
           .expected = "user " + std::to_string(owner_),
           .got = "user " + std::to_string(seen.status.st_uid)});
    } else if ((mode & 07777) != expected_mode(place)) {
      add({.kind = Kind::Mode,
           .paths = {below_prefix(seen.path)},
           .expected = mode_text(expected_mode(place)),
           .got = mode_text(mode)});
    }
  };
  const static Place kRoot;
  compare_path("", kRoot);
  if (no_folders.contains("")) return;
  for (const auto& [path, place] : tree.layout) compare_path(path, place);
}

// An extra folder is one finding, whatever it holds.
void TreeComparer::find_extra(const ExpectedTree& tree) {
  std::error_code error;
  if (!fs::is_directory(fs::symlink_status(tree.folder, error))) return;
  fs::recursive_directory_iterator there(tree.folder, error);
  for (; !error && there != fs::recursive_directory_iterator(); there.increment(error)) {
    const std::string path = there->path().lexically_relative(tree.folder).generic_string();
    if (tree.layout.contains(path) || tree.own.contains(path)) continue;
    std::error_code ignored;
    if (there->is_directory(ignored)) there.disable_recursion_pending();
    add({.kind = Kind::Extra,
         .paths = {below_prefix(there->path())},
         .expected = "nothing",
         .got = kind_text(fs::is_directory(there->symlink_status(ignored)) ? S_IFDIR
                          : fs::is_symlink(there->symlink_status(ignored)) ? S_IFLNK
                                                                           : S_IFREG)});
  }
  if (error)
    add({.kind = Kind::Unknown,
         .paths = {below_prefix(tree.folder)},
         .expected = "a folder that can be listed",
         .got = error.message()});
}

// A file of the wrong size is wrong without being read.
void TreeComparer::hash_files(std::vector<FoundPath>& paths) {
  std::vector<FoundPath*> work;
  std::set<FileId> taken;
  std::uint64_t bytes = 0;
  for (FoundPath& seen : paths) {
    const FileId id{seen.status.st_dev, seen.status.st_ino};
    if (!S_ISREG(seen.status.st_mode) || static_cast<std::uint64_t>(seen.status.st_size) != seen.place->file.size ||
        digests_.contains(id) || !taken.insert(id).second)
      continue;
    work.push_back(&seen);
    bytes += seen.place->file.size;
  }
  std::stable_sort(work.begin(), work.end(),
                   [](const FoundPath* a, const FoundPath* b) { return a->status.st_size > b->status.st_size; });
  if (bytes > 0) progress_.begin("hashing", bytes);
  std::mutex guard;
  bundle::parallel_for(threads_, work.size(), [&](std::size_t index) {
    FoundPath& seen = *work[index];
    try {
      bundle::Bytes piece(std::min<std::uint64_t>(kPiece, seen.place->file.size));
      const bundle::InputFile file(seen.path);
      bundle::Hasher hasher;
      for (std::uint64_t at = 0; at < file.size(); at += piece.size()) {
        piece.resize(static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), file.size() - at)));
        file.read_exactly(at, piece);
        hasher.update(piece);
        progress_.add(piece.size());
      }
      const bundle::Digest digest = hasher.finish();
      const std::lock_guard lock(guard);
      digests_.emplace(FileId{seen.status.st_dev, seen.status.st_ino}, digest);
      bytes_ += file.size();
    } catch (const bundle::Error& error) {
      seen.fault = error.facts().got.empty() ? error.facts().what : error.facts().got;
    }
  });
  if (bytes > 0) progress_.end();
}

// Compares an existing file or link: its contents, then its mode and its owner.
void TreeComparer::compare_contents(const FoundPath& seen) {
  const FileId id{seen.status.st_dev, seen.status.st_ino};
  Deviation finding{.kind = Kind::Changed, .paths = {below_prefix(seen.path)}};
  const auto differ = [&](Kind kind, const std::string& expected, const std::string& got) {
    if (finding.expected.empty()) finding.kind = kind;
    finding.expected += (finding.expected.empty() ? "" : ", ") + expected;
    finding.got += (finding.got.empty() ? "" : ", ") + got;
  };
  if (S_ISLNK(seen.status.st_mode)) {
    std::error_code error;
    const std::string target = fs::read_symlink(seen.path, error).string();
    if (error)  // removed since lstat
      differ(error == std::errc::no_such_file_or_directory ? Kind::Missing : Kind::Unknown,
             "a link to " + seen.place->text, error.message());
    else if (target != seen.place->text)
      differ(Kind::Changed, "a link to " + seen.place->text, "a link to " + target);
  } else {
    const StoredFile& file = seen.place->file;
    const auto digest = digests_.find(id);
    if (const auto size = static_cast<std::uint64_t>(seen.status.st_size); size != file.size)
      differ(Kind::Changed, std::to_string(file.size) + " bytes", std::to_string(size) + " bytes");
    else if (digest == digests_.end())
      differ(Kind::Unknown, "a file that can be read", seen.fault.empty() ? "an unreadable one" : seen.fault);
    else if (digest->second != file.sha256)
      differ(Kind::Changed, "sha256 " + file.sha256.hex(), "sha256 " + digest->second.hex());
    if ((seen.status.st_mode & 07777) != expected_mode(*seen.place))
      differ(Kind::Mode, mode_text(expected_mode(*seen.place)), mode_text(seen.status.st_mode));
  }
  if (seen.status.st_uid != owner_)
    differ(Kind::Owner, "user " + std::to_string(owner_), "user " + std::to_string(seen.status.st_uid));
  if (finding.expected.empty()) return;
  const auto [there, fresh] = findings_by_file_.try_emplace(id, findings_.size());
  if (fresh || findings_[there->second].got != finding.got)
    findings_.push_back(std::move(finding));
  else
    findings_[there->second].paths.push_back(finding.paths.front());
}

}  // namespace sealift::installer
