// SPDX-License-Identifier: Apache-2.0
// All that is in no body of the patch is carried as it was; a body is copied from the base's archive where that has the
// same bytes, and else made, and compressed again as zlib does by default.
#include "installer/export/published_wheel.hpp"

#include <fcntl.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "installer/export/deflate.hpp"
#include "sealift/bundle/core/mapped_file.hpp"
#include "sealift/bundle/core/output_file.hpp"
#include "sealift/bundle/wheel/patched_wheel.hpp"

namespace sealift::installer {

namespace {

namespace fs = std::filesystem;
using bundle::ByteSource;
using bundle::Digest;
using bundle::Entry;
using bundle::Error;
using bundle::ErrorCode;
using bundle::WheelFile;

constexpr int kMaxBases = 32;  // wheels that are patches on each other
constexpr std::size_t kCopied = std::size_t{1} << 20;

// A wheel of a bundle.
struct Carried {
  const bundle::VerifiedBundle* bundle = nullptr;
  const Entry* entry = nullptr;

  std::string file_name() const { return entry->path.text().substr(entry->path.text().rfind('/') + 1); }
  std::string where() const { return bundle->manifest().stem() + ":" + entry->path.text(); }
  std::set<Digest> allowed() const {
    const std::vector<Digest>& files = bundle->manifest().environment.startup_files;
    return {files.begin(), files.end()};
  }
};

// A file in the scratch folder, for as long as this lives.
class WorkFile {
 public:
  explicit WorkFile(fs::path path) : path_(std::move(path)) { fs::remove(path_); }
  WorkFile(const WorkFile&) = delete;
  WorkFile& operator=(const WorkFile&) = delete;
  ~WorkFile() {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

void copy_range(ByteSource& source, std::uint64_t begin, std::uint64_t end, const bundle::ByteSink& sink) {
  while (begin < end) {
    const bundle::ByteView piece =
        source.view(begin, static_cast<std::size_t>(std::min<std::uint64_t>(end - begin, kCopied)));
    sink(piece);
    begin += piece.size();
  }
}

Carried find_base(const Carried& wheel, const VerifiedBundles& bases) {
  for (const auto& bundle : bases)
    for (const Entry& entry : bundle->manifest().entries)
      if (entry.kind == bundle::EntryKind::Wheel && !entry.absent && entry.content == wheel.entry->base)
        return {.bundle = bundle.get(), .entry = &entry};
  std::string looked;
  for (const auto& bundle : bases) looked += (looked.empty() ? "not in " : ", ") + bundle->manifest().stem();
  throw Error(ErrorCode::Missing,
              {.what = "a wheel is carried as a patch, and the wheel that it builds on is not here",
               .where = wheel.where(),
               .expected = "a bundle that carries the older wheel, content " + wheel.entry->base.hex(),
               .got = looked,
               .next = "name it with --base: the bundle that this delta was made on, or the bundle "
                       "that brought the wheel before"});
}

class Publishing {
 public:
  Publishing(const VerifiedBundles& bases, fs::path scratch) : bases_(bases), scratch_(std::move(scratch)) {}

  void stream(const Carried& wheel, int depth, const bundle::ByteSink& sink) {
    if (depth > kMaxBases)
      throw Error(ErrorCode::Format, {.what = "wheels are patches on each other without end", .where = wheel.where()});
    const Carried base = find_base(wheel, bases_);
    const WorkFile made(scratch_ / ("base" + std::to_string(depth)));
    const std::unique_ptr<ByteSource> before = archive_of(base, depth, made.path());
    const std::unique_ptr<ByteSource> stored = wheel.bundle->stored(*wheel.entry);
    bundle::PatchedWheel archive(*stored, wheel.entry->size);
    bundle::Hasher hasher;
    const bundle::ByteSink take = [&](bundle::ByteView piece) {
      hasher.update(piece);
      sink(piece);
    };
    bodies(wheel, archive, base, *before, take);
    if (const Digest digest = hasher.finish(); digest != wheel.entry->sha256)
      throw Error(ErrorCode::Digest, {.what = "a wheel rebuilt from a patch differs from the published one",
                                      .where = wheel.where(),
                                      .expected = "sha256 " + wheel.entry->sha256.hex(),
                                      .got = "sha256 " + digest.hex(),
                                      .next = "use a bundle that carries it whole (without --patches)"});
  }

 private:
  // The archive as it was published, by way of `path` where it is a patch itself.
  std::unique_ptr<ByteSource> archive_of(const Carried& wheel, int depth, const fs::path& path) {
    if (wheel.entry->encoding == bundle::Encoding::Identity) return wheel.bundle->stored(*wheel.entry);
    {
      bundle::OutputFile file(path);
      const bundle::ByteSink write = [&](bundle::ByteView piece) { file.write(piece); };
      wheel.entry->encoding == bundle::Encoding::Patch ? stream(wheel, depth + 1, write)
                                                       : wheel.bundle->stream(*wheel.entry, write);
    }
    return std::make_unique<bundle::FileSource>(path);
  }

  void bodies(const Carried& wheel, bundle::PatchedWheel& archive, const Carried& base, ByteSource& before,
              const bundle::ByteSink& sink) {
    const bundle::Wheel read(archive, wheel.file_name(), wheel.allowed());
    bundle::Wheel older(before, base.file_name(), base.allowed());
    std::map<Digest, const WheelFile*> had;
    for (const WheelFile& file : older.files()) had.emplace(file.sha256, &file);
    std::vector<const WheelFile*> files;
    for (const WheelFile& file : read.files()) files.push_back(&file);
    std::sort(files.begin(), files.end(),
              [](auto* a, auto* b) { return a->member.header_offset < b->member.header_offset; });
    std::uint64_t done = 0;
    for (const WheelFile* file : files) {
      const std::optional<Digest> from = archive.base_of(*file);
      if (!from) continue;
      const auto found = had.find(*from);
      if (found == had.end())
        throw Error(ErrorCode::Format, {.what = "a patch builds on a file that the older wheel does not have",
                                        .where = wheel.where() + ", " + bundle::SafePath::printable(file->path),
                                        .expected = "sha256 " + from->hex() + " in " + base.where()});
      const std::uint64_t begin = bundle::ZipReader::begin_of(archive, file->member);
      copy_range(archive, done, begin, sink);
      body(wheel, archive, *file, *found->second, older, before, sink);
      done = begin + file->member.compressed_size;
    }
    copy_range(archive, done, archive.size(), sink);
  }

  void body(const Carried& wheel, bundle::PatchedWheel& archive, const WheelFile& file, const WheelFile& from,
            bundle::Wheel& older, ByteSource& before, const bundle::ByteSink& sink) {
    const bundle::ZipMember &member = file.member, &old = from.member;
    if (from.sha256 == file.sha256 && old.deflated == member.deflated &&
        old.compressed_size == member.compressed_size) {
      const std::uint64_t begin = bundle::ZipReader::begin_of(before, old);
      return copy_range(before, begin, begin + old.compressed_size, sink);
    }
    const WorkFile unpacked(scratch_ / "file");
    {
      bundle::OutputFile output(unpacked.path());
      older.extract(from, [&](bundle::ByteView piece) { output.write(piece); });
    }
    const bundle::MappedFile mapped(bundle::Descriptor(::open(unpacked.path().c_str(), O_RDONLY | O_CLOEXEC)), old.size,
                                    unpacked.path());
    std::uint64_t made = 0;
    const bundle::ByteSink count = [&](bundle::ByteView piece) {
      made += piece.size();
      if (made <= member.compressed_size) sink(piece);
    };
    if (member.deflated) {
      Deflate deflate(count);
      archive.rebuild(file, mapped.bytes(), [&](bundle::ByteView piece) { deflate.feed(piece); });
      deflate.finish();
    } else {
      archive.rebuild(file, mapped.bytes(), count);
    }
    if (made != member.compressed_size)
      throw Error(ErrorCode::CannotCheck,
                  {.what = "the published archive cannot be made again: its publisher compressed a file in another way",
                   .where = wheel.where() + ", " + bundle::SafePath::printable(file.path),
                   .expected = std::to_string(member.compressed_size) + " bytes, as it was compressed",
                   .got = std::to_string(made) + " bytes by zlib's level 6",
                   .next = "install the delta, or use a bundle that carries the wheel whole (without --patches)"});
  }

  const VerifiedBundles& bases_;
  fs::path scratch_;
};

}  // namespace

void stream_published(const bundle::VerifiedBundle& bundle, const Entry& entry, const VerifiedBundles& bases,
                      const fs::path& scratch, const bundle::ByteSink& sink) {
  Publishing(bases, scratch).stream({.bundle = &bundle, .entry = &entry}, 0, sink);
}

}  // namespace sealift::installer
