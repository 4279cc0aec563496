// SPDX-License-Identifier: Apache-2.0
// look -> write each file in a scratch folder -> compare with what was published -> sync -> link it to its name: a link
// never replaces what is there, as a rename would.
#include "installer/export/export_bundle.hpp"

#include <mutex>

#include "bundle/host/require_trusted.hpp"
#include "installer/disk/anchored.hpp"
#include "installer/disk/file_output.hpp"
#include "installer/disk/nameless_folder.hpp"
#include "sealift/bundle/core/human_text.hpp"
#include "sealift/bundle/core/parallel_for.hpp"

namespace sealift::installer {

namespace {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

bool stands(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

bundle::Digest digest_of_file(const fs::path& path, std::uint64_t size) {
  bundle::FileSource source(path);
  bundle::Hasher hasher;
  for (std::uint64_t offset = 0; source.size() == size && offset < size;) {
    const bundle::ByteView piece = source.view(offset, std::size_t{1} << 20);
    hasher.update(piece);
    offset += piece.size();
  }
  return hasher.finish();
}

[[noreturn]] void refuse_other_file(const fs::path& path, const bundle::Entry& entry, const std::string& got) {
  throw Error(ErrorCode::Conflict, {.what = "another file has this name already, and it is not replaced",
                                    .where = path.string(),
                                    .expected = "sha256 " + entry.sha256.hex() + ", or nothing",
                                    .got = got,
                                    .next = "move it away, or export into another folder"});
}

// What lies behind a link somebody else may change after it was looked at.
void refuse_links_on_the_way(const fs::path& folder, const bundle::SafePath& place) {
  const std::string& text = place.text();
  for (std::size_t slash = text.find('/'); slash != text.npos; slash = text.find('/', slash + 1))
    if (const fs::path part = folder / text.substr(0, slash); fs::is_symlink(fs::symlink_status(part)))
      throw Error(ErrorCode::Conflict, {.what = "a symbolic link stands where a folder of the export is to be",
                                        .where = part.string(),
                                        .expected = "a folder, or nothing",
                                        .got = "a symbolic link, which was not followed",
                                        .next = "move it away, or export into another folder"});
}

// True when the very bytes are there already; throws Conflict when something else is.
bool is_there(const fs::path& folder, const bundle::SafePath& place, const bundle::Entry& entry) {
  refuse_links_on_the_way(folder, place);
  const fs::path path = place.below(folder);
  if (!stands(path)) return false;
  if (!fs::is_regular_file(fs::symlink_status(path)))
    refuse_other_file(path, entry, "something other than a plain file");
  const bundle::Digest digest = digest_of_file(path, entry.size);
  if (digest != entry.sha256) refuse_other_file(path, entry, "sha256 " + digest.hex());
  return true;
}

// Gives files their names, many after one sync.
class Naming {
 public:
  Naming(Disk& disk, const fs::path& folder, const fs::path& scratch)
      : disk_(disk), folder_(folder), scratch_(scratch) {}

  void add(std::string temporary, const ExportFile& file) {
    bool full = false;
    {
      const std::lock_guard lock(guard_);
      finished_.push_back({std::move(temporary), &file});
      full = (bytes_ += file.entry->size) >= kBatch;
    }
    if (full) flush();
  }

  void flush() {
    std::vector<Finished> batch;
    {
      const std::lock_guard lock(guard_);
      batch.swap(finished_);
      bytes_ = 0;
    }
    if (batch.empty()) return;
    disk_.sync_all(scratch_);
    for (const Finished& one : batch) name(one);
    disk_.sync_all(folder_);
  }

 private:
  struct Finished {
    std::string temporary;
    const ExportFile* file;
  };
  static constexpr std::uint64_t kBatch = std::uint64_t{1} << 30;  // bytes that a crash may cost

  void name(const Finished& one) {
    const fs::path path = one.file->place.below(folder_), from = scratch_ / one.temporary;
    disk_.make_folders(path.parent_path());
    if (came_meanwhile(one)) return disk_.remove_tree(from);
    const OpenFolder here = disk_.open_folder(scratch_), there = disk_.open_folder(path.parent_path());
    const std::string last = path.filename();
    try {
      if (!disk_.link({here, one.temporary.c_str()}, {there, last.c_str()}))
        return disk_.rename(from, path);  // this file system has no links
    } catch (const Error&) {
      if (!came_meanwhile(one)) throw;
    }
    disk_.remove_tree(from);
  }

  // Another run may write the same files.
  bool came_meanwhile(const Finished& one) const { return is_there(folder_, one.file->place, *one.file->entry); }

  Disk& disk_;
  const fs::path& folder_;
  const fs::path& scratch_;
  std::mutex guard_;
  std::vector<Finished> finished_;
  std::uint64_t bytes_ = 0;
};

// Each chunk was checked when it was read; whether they are the bytes that others published only this digest says.
void write_file(const bundle::VerifiedBundle& bundle, const ExportFile& file, const VerifiedBundles& bases,
                const fs::path& path, Disk& disk, bundle::Progress& progress) {
  const bundle::Entry& entry = *file.entry;
  FileOutput output(disk);
  bundle::Hasher hasher;
  output.begin(disk.create(path, entry.executable ? 0755 : 0644), path);
  const bundle::ByteSink take = [&](bundle::ByteView piece) {
    hasher.update(piece);
    output.append(piece);
    progress.add(piece.size());
  };
  if (file.text) {
    take(bundle::as_bytes(file.text->text));
  } else if (entry.encoding == bundle::Encoding::Patch) {
    const fs::path work = path.string() + ".work";
    disk.make_folder(work);
    stream_published(bundle, entry, bases, work, take);
    disk.remove_tree(work);
  } else {
    bundle.stream(entry, take);
  }
  output.finish();
  if (const bundle::Digest digest = hasher.finish(); digest != entry.sha256)
    throw Error(ErrorCode::Digest, {.what = "an entry is not what the manifest says was published",
                                    .where = entry.path.text(),
                                    .expected = "sha256 " + entry.sha256.hex(),
                                    .got = "sha256 " + digest.hex(),
                                    .next = "do not use this bundle; tell who signed it"});
}

void write_folder(const bundle::VerifiedBundle& bundle, const FolderPlan& plan, const VerifiedBundles& bases,
                  unsigned threads, Disk& disk, bundle::Progress& progress) {
  if (plan.files.empty() && plan.last.empty()) return;
  disk.make_folders(plan.folder);
  const Anchored anchored(disk, plan.folder);
  const NamelessFolder scratch(disk, plan.folder, ".sealift-export-");
  Naming naming(disk, plan.folder, scratch.path());
  std::exception_ptr failure;
  try {
    bundle::parallel_for(threads, plan.files.size(), [&](std::size_t index) {
      const std::string temporary = std::to_string(index);
      write_file(bundle, plan.files[index], bases, scratch.path() / temporary, disk, progress);
      naming.add(temporary, plan.files[index]);
    });
  } catch (...) {
    failure = std::current_exception();
  }
  try {
    naming.flush();  // after a failure too: what is right need not be read again
  } catch (...) {
    if (!failure) failure = std::current_exception();
  }
  if (failure) std::rethrow_exception(failure);
  for (const ExportFile& file : plan.last) {  // what it names is durable by now
    const std::string temporary = "last-" + file.place.text();
    write_file(bundle, file, bases, scratch.path() / temporary, disk, progress);
    naming.add(temporary, file);
  }
  naming.flush();
}

// Leaves in the plan what has to be written.
ExportedFolder look(FolderPlan& plan) {
  bundle::require_trusted_path(plan.folder, bundle::Above::Site,
                               "another user may have what is exported lie elsewhere");
  ExportedFolder result{.folder = plan.folder, .written = {}, .there = {}, .absent = {}, .patched = {}};
  for (const bundle::Entry* entry : plan.absent) result.absent.push_back(entry->path.text());
  const auto stands_already = [&](const ExportFile& file) {
    const bool there = is_there(plan.folder, file.place, *file.entry);
    (there ? result.there : result.written).push_back(file.place.text());
    if (!there) result.bytes += file.entry->size;
    return there;
  };
  std::erase_if(plan.files, stands_already);
  std::erase_if(plan.last, stands_already);
  return result;
}

void require_space(const ExportedFolder& folder, const Disk& disk) {
  const std::uint64_t free = disk.free_space(folder.folder).bytes;
  if (free >= folder.bytes) return;
  throw Error(ErrorCode::Space, {.what = "there is not enough room for these files",
                                 .where = folder.folder.string(),
                                 .expected = bundle::human_size(folder.bytes),
                                 .got = bundle::human_size(free),
                                 .next = "make room, or name a folder on another disk"});
}

// Nothing where the bundle carries none.
bundle::ImageCatalogue read_images(const bundle::VerifiedBundle& bundle) {
  const bundle::Entry* entry = bundle.manifest().find(bundle::SafePath::parse(bundle::kImageCatalogueEntry, ""));
  if (entry == nullptr) return {};
  const std::string where = bundle.manifest().stem() + ":" + entry->path.text();
  if (entry->size > bundle::kMaxImageCatalogue)
    throw Error(ErrorCode::Format, {.what = "the catalogue of images is larger than 64 MiB", .where = where});
  std::string text;
  bundle.stream(*entry, [&](bundle::ByteView piece) { text += bundle::as_text(piece); });
  return bundle::parse_image_catalogue(text, bundle.manifest(), where);
}

}  // namespace

Exported export_bundle(const bundle::VerifiedBundle& bundle, const ExportFolders& folders, unsigned threads, Disk& disk,
                       bundle::Progress& progress, const VerifiedBundles& bases) {
  const bundle::Manifest& manifest = bundle.manifest();
  Exported exported{.name = manifest.name,
                    .version = manifest.version,
                    .identity = bundle.identity(),
                    .warnings = bundle.warnings(),
                    .folders = {},
                    .mended = {}};
  std::vector<FolderPlan> plans =
      plan_export(manifest, folders, folders.images.empty() ? bundle::ImageCatalogue{} : read_images(bundle));
  std::uint64_t bytes = 0;
  for (FolderPlan& plan : plans) {
    std::vector<std::string> patched;
    for (ExportFile& file : plan.patched)
      if (bases.empty())
        patched.push_back(file.entry->path.text());
      else
        plan.files.push_back(std::move(file));
    exported.folders.push_back(look(plan));
    exported.folders.back().patched = std::move(patched);
    require_space(exported.folders.back(), disk);
    bytes += exported.folders.back().bytes;
  }
  progress.begin("exporting " + manifest.stem(), bytes);
  for (const FolderPlan& plan : plans) write_folder(bundle, plan, bases, threads, disk, progress);
  progress.end();
  exported.mended = bundle.payload().mended();
  return exported;
}

}  // namespace sealift::installer
