// SPDX-License-Identifier: Apache-2.0
// Generations are removed before the items that they refer to, each step durable before the next: after any crash,
// every named generation still has its items. The next run of any writing verb removes what lies in staging.
#include "installer/upkeep/gc.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>

#include "installer/activation/modulefiles.hpp"
#include "installer/generations/generation_record.hpp"
#include "installer/prefix/prefix_lock.hpp"
#include "installer/store/stamps.hpp"

namespace sealift::installer {

namespace fs = std::filesystem;

namespace {

// Counts what removing folders frees: a file's blocks are free once all of its names are gone.
class FreedSpace {
 public:
  void add(const fs::path& path) {
    count(path);
    std::error_code error;
    if (!fs::is_directory(fs::symlink_status(path, error))) return;
    fs::recursive_directory_iterator tree(path, fs::directory_options::skip_permission_denied, error);
    for (; !error && tree != fs::recursive_directory_iterator(); tree.increment(error)) count(tree->path());
  }
  std::uint64_t names() const { return names_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  void count(const fs::path& path) {
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0) return;
    ++names_;
    if (S_ISDIR(status.st_mode) || status.st_nlink == 1 || ++links_[{status.st_dev, status.st_ino}] == status.st_nlink)
      bytes_ += static_cast<std::uint64_t>(status.st_blocks) * 512;
  }

  std::map<std::pair<dev_t, ino_t>, nlink_t> links_;
  std::uint64_t names_ = 0;
  std::uint64_t bytes_ = 0;
};

// A generation's own module files, which would lead nowhere. (Of a damaged record nobody knows the name.)
std::vector<fs::path> files_that_lead_to(const Status& status, unsigned number, const Prefix& prefix) {
  std::vector<fs::path> there;
  std::error_code ignored;
  for (const Status::Generation& generation : status.generations)
    if (generation.number == number && generation.record)
      for (const auto& [path, text] : modulefiles_of(prefix, *generation.record, {}))
        if (fs::exists(path, ignored)) there.push_back(path);
  return there;
}

std::vector<fs::path> paths_of(const Cleanup& cleanup, const Status& status, const Prefix& prefix) {
  std::vector<fs::path> folders;
  for (const unsigned number : cleanup.generations)
    for (const fs::path& file : files_that_lead_to(status, number, prefix)) folders.push_back(file);
  for (const unsigned number : cleanup.generations) folders.push_back(prefix.generation(number));
  for (const std::string& item : cleanup.items) folders.push_back(prefix.store() / item);
  return folders;
}

void count_freed_space(const std::vector<fs::path>& folders, Cleanup& cleanup) {
  FreedSpace freed;
  for (const fs::path& folder : folders) freed.add(folder);
  cleanup.files = freed.names();
  cleanup.bytes = freed.bytes();
}

// Why a generation stays, apart from being in use; empty for no reason.
std::string reason_to_keep(const Status& status, std::size_t index, unsigned keep) {
  const Status::Generation& generation = status.generations[index];
  if (generation.number == status.current) return "current";
  if (generation.pinned) return "pinned";
  if (!generation.venvs.empty()) return "used by the virtual environment " + generation.venvs.front().string();
  if (index + keep >= status.generations.size())
    return keep == 1 ? "the newest" : "of the newest " + std::to_string(keep);
  return "";
}

// Warns of processes that cannot be seen from here and may still use what is removed.
void warn_of_invisible_processes(const ProcessView& view, const Prefix& prefix, const Disk& disk, Cleanup& cleanup) {
  if (view.hidden > 0)
    cleanup.warnings.push_back(std::to_string(view.hidden) +
                               " processes, mostly of other users, may not be examined; pin what they use, or run this "
                               "as root");
  if (view.others_invisible)
    cleanup.warnings.push_back("/proc does not show other users' processes; pin what they use, or run this as root");
  // NFS, Lustre, GPFS, BeeGFS, CIFS and SMB2, by their numbers in statfs(2).
  constexpr long kShared[] = {0x6969, 0x0BD00BD0, 0x47504653, 0x19830326, 0xFF534D42, 0xFE534D42};
  const long type = disk.mount(prefix.folder()).type;
  if (std::count(std::begin(kShared), std::end(kShared), type) != 0)
    cleanup.warnings.push_back("this file system is shared: what other machines run is not seen; pin what they use");
}

// Items of the store that no generation of `kept` refers to.
std::vector<std::string> unreferenced_items(const Status& status, const Cleanup& cleanup, const Prefix& prefix,
                                            std::vector<std::string>& warnings) {
  std::set<std::string> referenced;
  for (const Status::Generation& generation : status.generations) {
    if (std::count(cleanup.generations.begin(), cleanup.generations.end(), generation.number) != 0) continue;
    if (!generation.record) {
      warnings.push_back("generation " + std::to_string(generation.number) +
                         " stays and its record is damaged, so nobody knows its items: the store is left alone");
      return {};
    }
    for (const GenerationRecord::Part& part : generation.record->entries) referenced.insert(part.item);
  }
  std::vector<std::string> items = item_names(prefix);
  std::erase_if(items, [&](const std::string& item) { return referenced.contains(item); });
  return items;
}

Cleanup make_cleanup(const GcOptions& options, const Disk& disk) {
  const Prefix& prefix = options.prefix;
  const Status status = status_of(prefix);
  std::vector<fs::path> folders;  // that may be removed
  for (std::size_t i = 0; i < status.generations.size(); ++i)
    if (reason_to_keep(status, i, options.keep).empty())
      folders.push_back(prefix.generation(status.generations[i].number));
  for (const std::string& item : item_names(prefix)) folders.push_back(prefix.store() / item);

  Cleanup cleanup;
  const ProcessView view = who_uses(folders, options.proc);
  for (std::size_t i = 0; i < status.generations.size(); ++i) {
    const unsigned number = status.generations[i].number;
    const auto user = view.used.find(prefix.generation(number));
    std::string why = reason_to_keep(status, i, options.keep);
    if (why.empty() && user != view.used.end()) why = "in use by " + user->second;
    if (why.empty())
      cleanup.generations.push_back(number);
    else
      cleanup.kept.push_back({.number = number, .why = std::move(why)});
  }
  cleanup.items = unreferenced_items(status, cleanup, prefix, cleanup.warnings);
  std::erase_if(cleanup.items, [&](const std::string& item) { return view.used.contains(prefix.store() / item); });
  count_freed_space(paths_of(cleanup, status, prefix), cleanup);
  if (!cleanup.generations.empty() || !cleanup.items.empty()) warn_of_invisible_processes(view, prefix, disk, cleanup);
  std::error_code ignored;
  if (fs::exists(prefix.staged_items(), ignored))
    cleanup.warnings.push_back("an unfinished apply left verified entries in " + prefix.staged_items().string() +
                               ": run it again, or remove them");
  return cleanup;
}

// Renames `from` to `aside` and checks again for users: a process that started meanwhile is found by the folder's
// inode, whatever its name. Returns false when the folder is in use and was renamed back.
bool put_aside(const fs::path& from, const fs::path& aside, const GcOptions& options, Disk& disk) {
  disk.rename(from, aside);
  if (!who_uses({aside}, options.proc).used.contains(aside)) return true;
  disk.rename(aside, from);
  return false;
}

// Takes the generations that were renamed back out of the plan, and their items.
void keep_generations_in_use(const std::vector<unsigned>& stayed, const Prefix& prefix, Cleanup& cleanup) {
  for (const unsigned number : stayed) {
    std::erase(cleanup.generations, number);
    cleanup.kept.push_back({.number = number, .why = "in use by a process that has just started"});
  }
  const std::vector<std::string> free = unreferenced_items(status_of(prefix), {}, prefix, cleanup.warnings);
  std::erase_if(cleanup.items,
                [&](const std::string& item) { return std::find(free.begin(), free.end(), item) == free.end(); });
}

void remove(Cleanup& cleanup, const GcOptions& options, Disk& disk) {
  const Prefix& prefix = options.prefix;
  const fs::path work = prefix.staging() / ("gc-" + std::to_string(::getpid())), trash = work / "removed";
  disk.make_folder(prefix.staging());
  disk.make_folder(work);
  disk.make_folder(trash);
  Stamps stamps = Stamps::read(prefix);  // what stays loses names, which moves its time of change
  stamps.follow_links(prefix, true);
  const Status before = status_of(prefix);
  std::vector<unsigned> stayed;
  for (const unsigned number : cleanup.generations)
    if (put_aside(prefix.generation(number), trash / Prefix::generation_name(number), options, disk))
      for (const fs::path& file : files_that_lead_to(before, number, prefix))
        disk.rename(file, trash / file.filename());
    else
      stayed.push_back(number);
  if (!stayed.empty()) keep_generations_in_use(stayed, prefix, cleanup);
  if (!cleanup.generations.empty()) disk.sync_folder(prefix.generations());
  // No program is started from the store, and no named generation refers to these items.
  for (const std::string& item : cleanup.items) disk.rename(prefix.store() / item, trash / item);
  if (!cleanup.items.empty()) disk.sync_folder(prefix.store());
  if (!stayed.empty()) count_freed_space({trash}, cleanup);
  disk.remove_tree(trash);
  stamps.follow_links(prefix);
  stamps.save(prefix, work, disk);
  disk.remove_tree(work);
}

}  // namespace

Cleanup gc(const GcOptions& options, Disk& disk) {
  if (options.keep == 0)
    throw bundle::Error(
        bundle::ErrorCode::Usage,
        {.what = "at least the newest generation stays", .where = "--keep", .expected = "1 or more", .got = "0"});
  if (options.dry_run) return make_cleanup(options, disk);
  status_of(options.prefix);  // throws Missing before the prefix lock makes a prefix
  const PrefixLock lock(options.prefix, disk, "gc");
  sweep(options.prefix, disk);
  Cleanup cleanup = make_cleanup(options, disk);
  if (cleanup.generations.empty() && cleanup.items.empty()) return cleanup;
  remove(cleanup, options, disk);
  sweep(options.prefix, disk);
  return cleanup;
}

}  // namespace sealift::installer
