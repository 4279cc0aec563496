// SPDX-License-Identifier: Apache-2.0
// Contents and cache -> NativeFiles; see native_files.hpp. The largest wheels first, a thread for each processor, since
// inflating gigabytes is what takes the time.
#include "packager/native/native_files.hpp"

#include <elf.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "bundle/host/scratch_folder.hpp"
#include "packager/libraries/carried_runtime.hpp"
#include "packager/native/native_cache.hpp"
#include "packager/native/native_intake.hpp"
#include "sealift/bundle/archive/tar.hpp"
#include "sealift/bundle/core/parallel_for.hpp"
#include "sealift/bundle/host/interrupt.hpp"
#include "sealift/bundle/wheel/installed_path.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::ByteView;
using bundle::Error;
using bundle::ErrorCode;

namespace {

constexpr std::size_t kMaxNameBytes = std::size_t{128} << 20;  // of the names in all ELF files together

std::size_t text_size(const NativeFile& file) {
  std::size_t size = file.path.size() + file.elf.rpath.size() + file.elf.runpath.size() + file.elf.soname.size();
  for (const std::string& name : file.elf.needed) size += name.size() + sizeof name;
  for (const auto& [library, versions] : file.elf.wanted_versions)
    for (const std::string& version : versions) size += version.size() + sizeof version;
  for (const std::string& version : file.elf.offered_versions) size += version.size() + sizeof version;
  for (const std::string& name : file.names) size += name.size() + sizeof name;
  for (const std::string& name : file.symbols.undefined) size += name.size() + sizeof name;
  size += file.symbols.defined.size() * sizeof file.symbols.defined[0];
  return size;
}

// Collects files from several threads.
class Gathering {
 public:
  void add(std::vector<NativeFile> files) {
    const std::lock_guard lock(guard_);
    for (NativeFile& file : files) {
      if ((text_ += text_size(file)) > kMaxNameBytes)
        throw Error(ErrorCode::Format, {.what = "the ELF files name more libraries and versions than any real bundle",
                                        .where = file.owner + ", " + file.path,
                                        .next = "leave this package out"});
      found_.files.push_back(std::move(file));
    }
  }
  void add_link(const std::string& path, std::string means) {
    const std::lock_guard lock(guard_);
    found_.links[path] = std::move(means);
  }
  NativeFiles take() {
    std::sort(found_.files.begin(), found_.files.end(),
              [](const NativeFile& a, const NativeFile& b) { return a.path < b.path; });
    return std::move(found_);
  }

 private:
  std::mutex guard_;
  std::size_t text_ = 0;
  NativeFiles found_;
};

// Where files are read from, and what earlier runs have kept.
struct Shelf {
  const Cache& cache;
  NativeCache kept;
  std::string site_packages;
};

// Compares each file with its digest in RECORD, which installers take as it is, on the way to the native ones. The
// wheel itself is not hashed for it: who writes it does that.
std::vector<NativeFile> read_wheel(const Content& content, const Shelf& shelf, NativeIntake& intake) {
  const fs::path path = shelf.cache.path(content.sha256);
  const NativeCache::Reading reading = shelf.kept.begin(content.sha256);
  bundle::FileSource source(path);
  bundle::Wheel wheel(source, content.name, content.startup_files);
  std::vector<NativeFile> files;
  for (const bundle::WheelFile& file : wheel.files()) {
    if (!is_elf(wheel.start_of(file, SELFMAG))) {
      wheel.extract(file, [](ByteView) { bundle::stop_if_interrupted(); });  // for its digest in RECORD
      continue;
    }
    intake.begin();
    wheel.extract(file, [&](ByteView piece) { intake.feed(piece); });
    intake.end({.path = bundle::installed_path(file.scheme, file.path, wheel.dist_info(), shelf.site_packages),
                .owner = content.owner,
                .from_wheel = true,
                .sha256 = file.sha256},
               files);
  }
  shelf.kept.end(reading, files);
  return files;
}

// Links are read each time: they are in the tar's headers, and nothing has to be inflated for them. What is written of
// a tar is another file, its compressed form, so nobody later hashes this one.
std::vector<NativeFile> read_interpreter(const Content& content, const Shelf& shelf, Gathering& gathering,
                                         NativeIntake& intake) {
  const fs::path tar = shelf.cache.path(content.sha256);
  const std::optional<std::vector<NativeFile>> known = shelf.kept.read(content.sha256, content.owner);
  const NativeCache::Reading reading = shelf.kept.begin(content.sha256);
  bundle::FileSource source(tar);
  bundle::Hasher hasher;
  std::vector<NativeFile> files;
  NativeFile file;
  std::uint64_t left = 0;
  bool first = true, elf = false;
  bundle::TarReader reader(
      {.begin =
           [&](const bundle::TarMember& member) {
             if (member.type == bundle::TarType::Link)
               gathering.add_link(member.path,
                                  (fs::path(member.path).parent_path() / member.target).lexically_normal().string());
             file = {.path = member.path, .owner = content.owner};
             left = member.size;
             first = !known && !is_runtime_file(member.path);
             elf = false;
           },
       .data =
           [&](ByteView piece) {
             // Pieces end anywhere, but a member begins at a multiple of 512 in them, so its magic is whole.
             if (first && (elf = is_elf(bundle::as_text(piece)))) intake.begin();
             first = false;
             left -= piece.size();
             if (elf) intake.feed(piece);
             if (elf && left == 0) intake.end(std::move(file), files);
           }},
      tar.string());
  for (std::uint64_t offset = 0; offset < source.size();) {
    const ByteView piece = source.view(offset, std::size_t{1} << 20);
    if (!known) hasher.update(piece);
    reader.feed(piece);
    offset += piece.size();
  }
  reader.finish();
  if (known) return *known;
  if (hasher.finish() == content.sha256) {
    shelf.kept.end(reading, files);
    shelf.kept.confirm(content.sha256);
  }
  return files;
}

std::vector<NativeFile> read_program(const Content& content, const Shelf& shelf, NativeIntake& intake) {
  bundle::FileSource source(fs::canonical(file_of(content, shelf.cache)));
  if (source.size() < SELFMAG || !is_elf(bundle::as_text(source.read(0, SELFMAG)))) return {};
  std::vector<NativeFile> files;
  intake.begin();
  for (std::uint64_t offset = 0; offset < source.size();) {
    const ByteView piece = source.view(offset, std::size_t{1} << 20);
    intake.feed(piece);
    offset += piece.size();
  }
  intake.end({.path = content.into, .owner = content.owner}, files);
  return files;
}

std::vector<NativeFile> read_content(const Content& content, const Shelf& shelf, const Repair& repair,
                                     const fs::path& scratch, Gathering& gathering) {
  NativeIntake intake(scratch);
  if (content.kind == Content::Kind::Program) return read_program(content, shelf, intake);
  if (content.kind == Content::Kind::Interpreter) return read_interpreter(content, shelf, gathering, intake);
  return read_repaired(content, repair, [&] { return read_wheel(content, shelf, intake); });
}

// All by several threads; an interpreter that is known still takes as long as the largest wheels' records.
void read_contents(const std::vector<Content>& contents, const Shelf& shelf, const Repair& repair,
                   const fs::path& scratch, Gathering& gathering, bundle::Progress& progress) {
  std::vector<std::pair<std::uint64_t, const Content*>> order;  // size, content
  std::uint64_t bytes = 0;
  for (const Content& content : contents) {
    if (content.kind == Content::Kind::File || content.kind == Content::Kind::Tree) continue;  // no programs' parts
    order.emplace_back(fs::file_size(fs::canonical(file_of(content, shelf.cache))), &content);
    bytes += order.back().first;
  }
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  progress.begin("checking native libraries", bytes);
  const unsigned threads = std::clamp(std::thread::hardware_concurrency(), 1U, 16U);
  bundle::parallel_for(threads, order.size(), [&](std::size_t index) {
    const auto& [size, content] = order[index];
    std::optional<std::vector<NativeFile>> files;
    if (content->kind == Content::Kind::Wheel) files = shelf.kept.read(content->sha256, content->owner);
    if (files)
      progress.skip(size);
    else {
      files = read_content(*content, shelf, repair, scratch / std::to_string(index), gathering);
      progress.add(size);
    }
    gathering.add(*std::move(files));
  });
  progress.end();
}

}  // namespace

NativeFiles read_native_files(const std::vector<Content>& contents, const std::string& python, const Cache& cache,
                              const Repair& repair, bundle::Progress& progress) {
  const bundle::ScratchFolder scratch("elf", cache.scratch());
  const Shelf shelf{
      .cache = cache, .kept = NativeCache(cache, python), .site_packages = bundle::site_packages_of(python)};
  Gathering gathering;
  read_contents(contents, shelf, repair, scratch.path(), gathering, progress);
  return gathering.take();
}

}  // namespace sealift::packager
