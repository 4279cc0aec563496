// SPDX-License-Identifier: Apache-2.0
// Every parent folder of every path is examined through /proc/PID/root. That costs some stat calls a process, and needs
// no knowledge of a container's mounts.
#include "installer/host/processes.hpp"

#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <optional>
#include <set>

#include "sealift/bundle/core/error.hpp"
#include "sealift/bundle/core/safe_path.hpp"

namespace sealift::installer {

namespace fs = std::filesystem;

namespace {

using FileId = std::pair<dev_t, ino_t>;

std::optional<FileId> id_of(const fs::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return FileId{status.st_dev, status.st_ino};
}

// A thread of the kernel has no files: bit 0x200000 of the ninth field of stat, which everybody may read.
bool is_kernel_thread(const fs::path& process) {
  std::ifstream file(process / "stat");
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return false;
  std::size_t at = name_end + 1;
  for (int field = 0; field < 7 && at != std::string::npos; ++field) at = text.find(' ', at + (field > 0 ? 1 : 0));
  return at != std::string::npos && (std::strtoul(text.c_str() + at, nullptr, 10) & 0x200000) != 0;
}

std::string name_of(const fs::path& process) {
  std::ifstream file(process / "comm");
  std::string name;
  std::getline(file, name);
  return "process " + process.filename().string() +
         (name.empty() ? "" : " (" + bundle::SafePath::printable(name) + ")");
}

// Paths that the process maps. False when that may not be read.
bool add_maps(const fs::path& process, std::set<std::string>& paths) {
  std::ifstream file(process / "maps");
  if (!file) return false;
  for (std::string line; std::getline(file, line);)
    if (const std::size_t slash = line.find('/'); slash != std::string::npos) paths.insert(line.substr(slash));
  return true;
}

// All paths that the process uses; nothing when this user may not examine it.
std::optional<std::set<std::string>> paths_of(const fs::path& process) {
  std::error_code error;
  const fs::path program = fs::read_symlink(process / "exe", error);
  if (error == std::errc::no_such_file_or_directory)
    return std::set<std::string>();  // it has ended, or is the kernel's
  if (error) return std::nullopt;
  std::set<std::string> paths = {program.string()};
  if (!add_maps(process, paths)) return std::nullopt;
  paths.insert(fs::read_symlink(process / "cwd", error).string());
  fs::directory_iterator open(process / "fd", error);
  if (error) return std::nullopt;
  for (; !error && open != fs::directory_iterator(); open.increment(error)) {
    std::error_code closed;
    paths.insert(fs::read_symlink(open->path(), closed).string());
  }
  return paths;
}

// Marks those folders of `wanted` that are `path` or a parent of it.
void mark_used(const fs::path& root, const std::string& path, const std::map<FileId, fs::path>& wanted,
               std::map<std::string, std::optional<fs::path>>& known, const std::string& who, ProcessView& view) {
  for (std::string here = path; here.size() > 1; here.resize(here.rfind('/'))) {
    const auto [seen, fresh] = known.try_emplace(here);
    if (fresh)
      if (const std::optional<FileId> id = id_of(root.string() + here); id && wanted.contains(*id))
        seen->second = wanted.at(*id);
    if (seen->second) view.used.emplace(*seen->second, who);
    if (!fresh) return;  // its parents are marked already
    if (here.rfind('/') == 0) return;
  }
}

}  // namespace

ProcessView who_uses(const std::vector<fs::path>& folders, const fs::path& proc) {
  std::map<FileId, fs::path> wanted;
  for (const fs::path& folder : folders)
    if (const std::optional<FileId> id = id_of(folder)) wanted.emplace(*id, folder);
  ProcessView view;
  std::error_code error;
  for (const fs::directory_entry& process : fs::directory_iterator(proc, error)) {
    if (process.path().filename().string().find_first_not_of("0123456789") != std::string::npos) continue;
    const std::optional<std::set<std::string>> paths = paths_of(process.path());
    std::error_code gone;
    if (!paths) {
      if (fs::exists(process.path(), gone) && !is_kernel_thread(process.path())) ++view.hidden;
      continue;
    }
    ++view.seen;
    std::map<std::string, std::optional<fs::path>> known;
    for (const std::string& path : *paths)
      if (path.starts_with('/')) mark_used(process.path() / "root", path, wanted, known, name_of(process.path()), view);
  }
  if (view.seen == 0)
    throw bundle::Error(bundle::ErrorCode::CannotCheck,
                        {.what = "it cannot be seen which files running processes use",
                         .where = proc.string(),
                         .expected = "the kernel's list of processes, with this one in it",
                         .got = error ? error.message() : "no process",
                         .next = "mount /proc and run this again"});
  view.others_invisible = !fs::exists(proc / "1", error);  // hidepid
  return view;
}

}  // namespace sealift::installer
