// SPDX-License-Identifier: Apache-2.0
// list -> choose -> check names and the files that are here -> hash; see lock_model.hpp.
#include "packager/models/lock_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <thread>
#include <utility>

#include "bundle/core/shell_word.hpp"
#include "bundle/core/unicode.hpp"
#include "bundle/host/scratch_folder.hpp"
#include "packager/files/known_chunks.hpp"
#include "packager/files/tree.hpp"
#include "packager/models/hub.hpp"
#include "packager/models/model_check.hpp"
#include "packager/models/model_files.hpp"
#include "packager/models/model_formats.hpp"
#include "sealift/bundle/core/human_text.hpp"
#include "sealift/bundle/core/parallel_for.hpp"
#include "sealift/bundle/core/safe_path.hpp"
#include "sealift/bundle/payload/payload_writer.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Digest;
using bundle::Error;
using bundle::ErrorCode;

namespace {

constexpr std::uint64_t kMaxUnpinned = std::uint64_t{256} << 20;  // of a file that is held in memory to hash it
constexpr std::uint64_t kBatchBytes = std::uint64_t{32} << 20;
constexpr std::size_t kBatchFiles = 64;

// Where links of a model's folder may lead: into the folder, or into the blobs of the hub's cache that it is a snapshot
// of (…/models--org--name/snapshots/COMMIT links to …/models--org--name/blobs). Every other file of this machine would
// be packed under a name that does not tell.
bool may_be_linked(const fs::path& file, const fs::path& folder) {
  const auto lies_in = [&](const fs::path& place) {
    const fs::path relative = file.lexically_relative(place);
    return !relative.empty() && *relative.begin() != ".." && *relative.begin() != ".";
  };
  if (lies_in(folder)) return true;
  const fs::path repository = folder.parent_path().parent_path();
  const std::string name = repository.filename().string();
  const bool snapshot = folder.parent_path().filename() == "snapshots" &&
                        (name.starts_with("models--") || name.starts_with("datasets--"));
  return snapshot && lies_in(repository / "blobs");
}

void refuse_foreign_link(const fs::path& path, const fs::path& folder) {
  const fs::path real = fs::canonical(path);
  if (may_be_linked(real, folder)) return;
  throw Error(ErrorCode::Usage, {.what = "a link leads out of a model's folder, so another file would be packed",
                                 .where = path.string(),
                                 .expected = "a file in " + folder.string() + ", or in the hub's cache around it",
                                 .got = real.string(),
                                 .next = "copy there what it points to, or remove it"});
}

// Names that no bundle can have, of a folder that is the packer's own: there is nobody else to ask for better ones.
class BadNames {
 public:
  explicit BadNames(const fs::path& folder) : folder_(folder) {}

  void look_at(const std::string& path) {
    try {
      bundle::SafePath::parse(path, folder_.string());
    } catch (const Error& error) {
      if (++count_ <= kMostTold) got_ += "\n    " + error.facts().got + ": " + error.facts().what;
    }
  }
  void refuse(bool data) const {
    if (count_ == 0) return;
    const std::string more = count_ > kMostTold ? fmt::format("\n    and {} more", count_ - kMostTold) : "";
    throw Error(ErrorCode::Format,
                {.what = fmt::format("{} name(s) in a folder cannot stand in a bundle", count_),
                 .where = folder_.string(),
                 .expected = "relative paths in UTF-8, without backslashes and control characters",
                 .got = got_ + more,
                 .next = "rename them there, those of a Chinese Windows by convmv -f gbk -t utf8 --notest -r " +
                         bundle::shell_word(folder_.string()) + (data ? "; or " + tar_remedy(folder_) : "")});
  }

 private:
  static constexpr std::size_t kMostTold = 50;
  fs::path folder_;
  std::size_t count_ = 0;
  std::string got_;
};

// macOS writes names in decomposed letters. Inside they are what programs ask for, and what a keyboard gives: composed.
void compose(HubFile& file) {
  std::string composed = bundle::composed(file.path);
  if (composed != file.path) file.spelled = std::exchange(file.path, std::move(composed));
}

void tell_of_composed(const HubListing& listing, const ModelSpec& spec, bundle::Progress& progress) {
  const auto spelled = [](const HubFile& file) { return !file.spelled.empty(); };
  const auto first = std::find_if(listing.files.begin(), listing.files.end(), spelled);
  if (first == listing.files.end()) return;
  progress.note(
      fmt::format("{}: {} name(s) have decomposed letters, as macOS writes them, and are carried with composed "
                  "ones (Unicode's NFC), such as {}",
                  spec.title(), std::count_if(first, listing.files.end(), spelled), first->path));
}

void refuse_equal_names(const HubListing& listing, const fs::path& folder) {
  const auto same = [](const HubFile& a, const HubFile& b) { return a.path == b.path; };
  const auto twin = std::adjacent_find(listing.files.begin(), listing.files.end(), same);
  if (twin == listing.files.end()) return;
  throw Error(ErrorCode::Usage,
              {.what = "two files of a folder have the same name, once with composed letters and once "
                       "with decomposed ones",
               .where = (folder / twin->path).string(),
               .expected = "one file of this name",
               .next = "rename one of them"});
}

HubListing list_folder(const ModelSpec& spec, bundle::Progress& progress) {
  HubListing listing;
  const fs::path real_folder = fs::canonical(spec.folder);
  BadNames names(spec.folder);
  for (fs::recursive_directory_iterator it(spec.folder), end; it != end; ++it) {
    const std::string path = it->path().lexically_relative(spec.folder).generic_string();
    if (is_bookkeeping(path)) {
      it.disable_recursion_pending();
      continue;
    }
    if (it->is_directory() && !it->is_symlink()) {
      if (!fs::is_empty(it->path())) continue;
      listing.empty_folders.push_back(bundle::composed(path));
      names.look_at(listing.empty_folders.back());
      continue;
    }
    if (!it->is_regular_file())
      throw Error(ErrorCode::Usage, {.what = "a model's folder has an entry that cannot be carried",
                                     .where = it->path().string(),
                                     .expected = "files, links to files, folders",
                                     .got = it->is_directory()         ? "a link to a folder"
                                            : fs::exists(it->status()) ? "a device, pipe or socket"
                                                                       : "a link to nothing",
                                     .next = "remove it from the folder, or copy there what it points to"});
    refuse_foreign_link(it->path(), real_folder);
    HubFile file{.path = path, .size = it->file_size(), .sha256 = {}};
    compose(file);
    names.look_at(file.path);
    listing.files.push_back(std::move(file));
  }
  names.refuse(spec.data);
  std::sort(listing.files.begin(), listing.files.end(),
            [](const HubFile& a, const HubFile& b) { return a.path < b.path; });
  std::sort(listing.empty_folders.begin(), listing.empty_folders.end());
  refuse_equal_names(listing, spec.folder);
  tell_of_composed(listing, spec, progress);
  return listing;
}

// A class without pictures is still a class: its number would be the next one's.
void warn_of_empty(const ModelSpec& spec, const std::vector<std::string>& folders, bundle::Progress& progress) {
  if (folders.empty()) return;
  constexpr std::size_t kMostTold = 10;
  std::string names;
  for (std::size_t i = 0; i < std::min(folders.size(), kMostTold); ++i) names += (i == 0 ? "" : ", ") + folders[i];
  if (folders.size() > kMostTold) names += ", …";
  progress.warn(
      fmt::format("{}: {} folder(s) without a file are not carried, since a bundle holds files: {} "
                  "(layout = \"tree\" carries them)",
                  spec.title(), folders.size(), names));
}

// Applies the patterns. Without patterns, also leaves out the same weights in other formats.
void choose_files(const JobModel& job, HubListing& listing, bundle::Progress& progress) {
  std::erase_if(listing.files, [&](const HubFile& file) {
    return is_bookkeeping(file.path) || (!job.include.empty() && !matches_any(file.path, job.include)) ||
           matches_any(file.path, job.exclude);
  });
  if (job.spec.data || !job.include.empty()) return;
  std::vector<std::string> paths;
  for (const HubFile& file : listing.files) paths.push_back(file.path);
  const std::vector<std::string> repeated = duplicate_formats(paths);
  if (repeated.empty()) return;
  const std::set<std::string> out(repeated.begin(), repeated.end());
  std::uint64_t size = 0;
  std::string names;
  for (const HubFile& file : listing.files)
    if (out.contains(file.path)) size += file.size;
  for (const std::string& path : repeated) names += (names.empty() ? "" : ", ") + path;
  progress.note(fmt::format("{}: the safetensors files hold the same, so {} are left out: {} (include takes them)",
                            job.spec.title(), bundle::human_size(size), names));
  std::erase_if(listing.files, [&](const HubFile& file) { return out.contains(file.path); });
}

void keep(const std::string& bytes, const Digest& digest, const Cache& cache) {
  if (!cache.contains(digest)) cache.keep(bytes, digest);  // `create` checks what is there
}

LockedModel list_model(const JobModel& job, const Cache& cache, bundle::Progress& progress,
                       const FetchOptions& options) {
  const bool folder = job.spec.hub == Hub::Folder;
  HubListing listing = folder ? list_folder(job.spec, progress) : list_repository(job.spec, options);
  choose_files(job, listing, progress);
  if (!folder) pin_small_files(job.spec, listing, cache, options);
  LockedModel model{.spec = job.spec, .commit = listing.commit, .files = {}};
  if (job.spec.layout == ModelLayout::Tree)
    model.empty_folders = std::move(listing.empty_folders);
  else
    warn_of_empty(job.spec, listing.empty_folders, progress);
  for (const HubFile& file : listing.files)
    model.files.push_back(
        {.path = file.path, .size = file.size, .sha256 = file.sha256.value_or(Digest{}), .spelled = file.spelled});
  return model;
}

// One file a thread, on as many threads as there are processors.
void hash_folders(std::vector<LockedModel>& models, const Cache& cache, bundle::Progress& progress) {
  std::vector<std::pair<const LockedModel*, LockedFile*>> todo;
  std::uint64_t total = 0;
  for (LockedModel& model : models)
    if (model.spec.hub == Hub::Folder && model.spec.layout != ModelLayout::Tree)
      for (LockedFile& file : model.files) {
        todo.emplace_back(&model, &file);
        total += file.size;
      }
  if (todo.empty()) return;
  std::sort(todo.begin(), todo.end(), [](const auto& a, const auto& b) { return a.second->size > b.second->size; });
  progress.begin("hashing models", total);
  const KnownChunks known(cache);
  bundle::parallel_for(std::thread::hardware_concurrency(), todo.size(), [&](std::size_t index) {
    const auto& [model, file] = todo[index];
    file->sha256 = known.learn(fs::canonical(model->spec.folder / file->at_source()),
                               [&](std::uint64_t bytes) { progress.add(bytes); });
  });
  progress.end();
}

// The archive takes the place of its files, whose digests it has.
void archive_folders(std::vector<LockedModel>& models, const Cache& cache, bundle::Progress& progress) {
  for (LockedModel& model : models) {
    if (model.spec.layout != ModelLayout::Tree) continue;
    progress.note(fmt::format("{}: {} files are carried as one archive", model.spec.title(), model.files.size()));
    Tree tree;
    for (const LockedFile& file : model.files)
      tree[model.spec.into + "/" + file.path] = {.source = model.spec.folder / file.at_source()};
    for (const std::string& folder : model.empty_folders) tree[model.spec.into + "/" + folder] = {.folder = true};
    model.empty_folders.clear();
    const bundle::ScratchFolder scratch("tree", cache.scratch());
    const TreeTar tar = write_tree_tar(tree, scratch.path() / "tree.tar");
    cache.adopt(scratch.path() / "tree.tar", tar.sha256);
    model.tree = LockedTree{.size = tar.size, .sha256 = tar.sha256, .files = model.files.size()};
    model.files.clear();
  }
}

}  // namespace

std::vector<LockedModel> list_models(const std::vector<JobModel>& jobs, const Cache& cache, bundle::Progress& progress,
                                     const FetchOptions& options) {
  std::vector<LockedModel> models;
  for (const JobModel& job : jobs) models.push_back(list_model(job, cache, progress, options));
  const LocateFile here = [&](const LockedModel& model, const LockedFile& file) {
    return local_file(model, file, cache);
  };
  require_sound(models, here, progress);
  return models;
}

// Hubs pin small files by a digest other than SHA-256, so those files are fetched now.
void pin_small_files(const ModelSpec& spec, HubListing& listing, const Cache& cache, const FetchOptions& options) {
  const KnownChunks known(cache);
  std::vector<HubFile*> open;
  for (HubFile& file : listing.files)
    if (!file.sha256) open.push_back(&file);
  for (std::size_t begin = 0; begin < open.size();) {
    std::vector<std::string> urls;
    std::uint64_t bytes = 0, largest = 0;
    std::size_t end = begin;
    for (; end < open.size() && urls.size() < kBatchFiles && (urls.empty() || bytes + open[end]->size <= kBatchBytes);
         ++end) {
      if (open[end]->size > kMaxUnpinned)
        throw Error(ErrorCode::CannotCheck, {.what = "the hub gives no SHA-256 for a large file",
                                             .where = spec.repo + "/" + open[end]->path,
                                             .got = bundle::human_size(open[end]->size),
                                             .next = "fetch it with the hub's client and give the folder as source"});
      urls.push_back(url_of(spec, listing.commit, open[end]->path));
      bytes += open[end]->size;
      largest = std::max(largest, open[end]->size);
    }
    const std::vector<RemoteDocument> answers = get_documents(
        urls, token_for(spec), largest, options, "a file of " + spec.repo + " cannot be fetched", hub_hint(spec));
    for (std::size_t i = begin; i < end; ++i) {
      const std::string& body = answers[i - begin].body;
      if (body.size() != open[i]->size)
        throw Error(ErrorCode::Digest, {.what = "the hub sent another file than it listed",
                                        .where = urls[i - begin],
                                        .expected = std::to_string(open[i]->size) + " bytes",
                                        .got = std::to_string(body.size()) + " bytes",
                                        .next = "run the same command again"});
      open[i]->sha256 = known.learn(bundle::as_bytes(body));
      keep(body, *open[i]->sha256, cache);
    }
    begin = end;
  }
}

void hash_models(std::vector<LockedModel>& models, const Cache& cache, bundle::Progress& progress) {
  hash_folders(models, cache, progress);
  archive_folders(models, cache, progress);
}

}  // namespace sealift::packager
