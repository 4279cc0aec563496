// SPDX-License-Identifier: Apache-2.0
// Members in the archive's order: leave out, patch or carry; then the head, then their bytes. See wheel_patch.hpp.
#include "sealift/bundle/wheel/wheel_patch.hpp"

#include <fcntl.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "bundle/archive/zstd.hpp"
#include "sealift/bundle/core/mapped_file.hpp"
#include "sealift/bundle/core/output_file.hpp"
#include "sealift/bundle/wheel/patched_wheel.hpp"
#include "sealift/bundle/wheel/wheel.hpp"

namespace sealift::bundle {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kCopiedPiece = std::size_t{1} << 20;
constexpr std::uint64_t kWorthALine = 64;   // a smaller body costs as much as the line that leaves it out
constexpr std::uint64_t kLargeBody = 4096;  // a smaller one is kept in the head

bool is_worth_it(std::uint64_t patch, std::uint64_t whole) {
  return patch <= whole - whole / 10;
}

// The bytes of one file of a wheel, held to RECORD, as a mapped file that is gone with this.
class UnpackedMember {
 public:
  UnpackedMember(Wheel& wheel, const WheelFile& file, fs::path path) : path_(std::move(path)) {
    fs::remove(path_);
    {
      OutputFile output(path_);
      wheel.extract(file, [&](ByteView piece) { output.write(piece); });
    }
    mapped_.emplace(Descriptor(::open(path_.c_str(), O_RDONLY | O_CLOEXEC)), file.member.size, path_);
  }
  UnpackedMember(const UnpackedMember&) = delete;
  UnpackedMember& operator=(const UnpackedMember&) = delete;
  ~UnpackedMember() {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }

  ByteView bytes() const { return mapped_->bytes(); }

 private:
  fs::path path_;
  std::optional<MappedFile> mapped_;
};

void compare_frame(ByteView frame, ByteView base, ByteView piece, const std::string& where) {
  ZstdDecoder decoder(piece.size(), where, base);
  bool same = true;
  decoder.feed(frame, [&](ByteView out) {
    same = same && std::equal(out.begin(), out.end(), piece.begin());
    piece = piece.subspan(out.size());
  });
  decoder.finish();
  if (!same)
    throw Error(ErrorCode::Format, {.what = "zstd makes patches that do not give what was patched",
                                    .where = where,
                                    .next = "report it; until then, run the same command without --patches"});
}

class PatchMaker {
 public:
  PatchMaker(const PublishedWheel& wheel, const PublishedWheel& base, fs::path scratch)
      : source_(wheel.source),
        wheel_(wheel.source, wheel.file_name, wheel.allowed_startup_files),
        base_(base.source, base.file_name, base.allowed_startup_files),
        file_name_(wheel.file_name),
        allowed_(wheel.allowed_startup_files),
        scratch_(std::move(scratch)),
        bodies_path_(scratch_ / "bodies") {
    fs::remove(bodies_path_);
    bodies_.emplace(bodies_path_);
    for (const WheelFile& file : base_.files()) {
      if (!is_stored_as_it_is(file)) continue;
      by_digest_.emplace(file.sha256, &file);
      by_place_.emplace(place_of(file, base_), &file);
    }
  }
  ~PatchMaker() {
    std::error_code ignored;
    fs::remove(bodies_path_, ignored);
  }

  void add_members(const std::function<void(std::uint64_t)>& progress) {
    std::vector<const WheelFile*> files;
    for (const WheelFile& file : wheel_.files()) files.push_back(&file);
    std::sort(files.begin(), files.end(),
              [](auto* a, auto* b) { return a->member.header_offset < b->member.header_offset; });
    for (const WheelFile* file : files) {
      if (file->member.compressed_size != 0) add(*file);
      if (progress) progress(file->member.compressed_size);
    }
    add_bones(source_.size());
  }

  // Nothing when it is not worth it.
  std::optional<WheelPatch> write(const fs::path& out) {
    const std::string head = lines_ + "\n" + bones_;
    if (head.size() > kMaxPatchHead || made_.same + made_.patched == 0) return std::nullopt;
    Bytes frame;
    const ByteSink take = [&](ByteView piece) { frame.insert(frame.end(), piece.begin(), piece.end()); };
    ZstdEncoder encoder(head.size());
    encoder.feed(as_bytes(head), take);
    encoder.finish(take);
    const std::string first =
        std::string(kPatchMagic) + std::to_string(head.size()) + " " + std::to_string(frame.size()) + "\n";
    made_.size = first.size() + frame.size() + bodies_->size();
    if (!is_worth_it(made_.size, source_.size())) return std::nullopt;
    bodies_.reset();
    Hasher hasher;
    {
      OutputFile file(out);
      const ByteSink both = [&](ByteView piece) { file.write(piece), hasher.update(piece); };
      both(as_bytes(first));
      both(frame);
      copy_bodies(both);
    }
    made_.sha256 = hasher.finish();
    FileSource written(out);
    PatchedWheel patched(written, source_.size());
    const Wheel readable(patched, file_name_, allowed_);  // what is sent must be what every reader accepts
    return made_;
  }

 private:
  // A wheel's item has all of its files, except the files that the installer rewrites.
  bool is_stored_as_it_is(const WheelFile& file) const {
    return !file.python_script && file.member.size != 0 && file.member.size <= kMaxPatchBase &&
           !(file.scheme == Scheme::SitePackages && file.path == base_.dist_info() + "/INSTALLER");
  }

  // Readers of a wheel look into its metadata, its start-up files, the beginnings of its scripts, and what RECORD
  // describes wrongly.
  bool may_be_left(const WheelFile& file) const {
    return file.scheme != Scheme::Scripts && !file.misdescribed && !file.path.starts_with(wheel_.dist_info() + "/") &&
           !file.path.ends_with(".pth") && file.member.compressed_size >= kWorthALine;
  }

  static std::pair<Scheme, std::string> place_of(const WheelFile& file, const Wheel& wheel) {
    const std::string own = wheel.dist_info() + "/";
    return {file.scheme, file.path.starts_with(own) ? "/" + file.path.substr(own.size()) : file.path};
  }

  void add(const WheelFile& file) {
    const std::uint64_t begin = ZipReader::begin_of(source_, file.member);
    const std::string range = std::to_string(begin) + " " + std::to_string(file.member.compressed_size);
    if (may_be_left(file) && by_digest_.contains(file.sha256)) {
      ++made_.same;
      return leave_out(begin, file, "same " + range);
    }
    const auto old = by_place_.find(place_of(file, wheel_));
    if (may_be_left(file) && old != by_place_.end())
      if (const std::optional<std::string> frames = patch(file, *old->second)) {
        ++made_.patched;
        return leave_out(begin, file, "patch " + range + " " + old->second->sha256.hex() + " " + *frames);
      }
    if (file.member.compressed_size <= kLargeBody) return;
    leave_out(begin, file, "carried " + range);
    copy(begin, file.member.compressed_size, [&](ByteView piece) { bodies_->write(piece); });
  }

  void leave_out(std::uint64_t begin, const WheelFile& file, const std::string& line) {
    add_bones(begin);
    done_ = begin + file.member.compressed_size;
    lines_ += line + "\n";
  }

  // What stands in the archive before `end`, behind the last body. A head that is too large is not kept.
  void add_bones(std::uint64_t end) {
    if (bones_.size() + (end - done_) <= kMaxPatchHead)
      copy(done_, end - done_, [&](ByteView piece) { bones_.append(as_text(piece)); });
    else
      bones_.resize(kMaxPatchHead);
    done_ = end;
  }

  void copy(std::uint64_t begin, std::uint64_t size, const ByteSink& sink) {
    for (std::uint64_t at = 0; at < size;) {
      const ByteView piece =
          source_.view(begin + at, static_cast<std::size_t>(std::min<std::uint64_t>(size - at, kCopiedPiece)));
      sink(piece);
      at += piece.size();
    }
  }

  // Adds the frames to the bodies and returns their sizes; nothing when they are not worth it.
  std::optional<std::string> patch(const WheelFile& file, const WheelFile& old) {
    const UnpackedMember before(base_, old, scratch_ / "before"), after(wheel_, file, scratch_ / "after");
    std::vector<Bytes> frames;
    std::uint64_t size = 0;
    for (ByteView left = after.bytes(); !left.empty();) {
      const ByteView piece = left.first(static_cast<std::size_t>(std::min<std::uint64_t>(left.size(), kPatchPiece)));
      frames.push_back(zstd_patch(before.bytes(), piece));
      compare_frame(frames.back(), before.bytes(), piece, file.path);
      size += frames.back().size();
      if (!is_worth_it(size, file.member.compressed_size)) return std::nullopt;
      left = left.subspan(piece.size());
    }
    std::string sizes;
    for (const Bytes& frame : frames) {
      bodies_->write(frame);
      sizes += (sizes.empty() ? "" : ",") + std::to_string(frame.size());
    }
    return sizes;
  }

  void copy_bodies(const ByteSink& sink) {
    FileSource bodies(bodies_path_);
    for (std::uint64_t at = 0; at < bodies.size();) {
      const ByteView piece = bodies.view(at, kCopiedPiece);
      sink(piece);
      at += piece.size();
    }
  }

  ByteSource& source_;
  Wheel wheel_, base_;
  std::string file_name_;
  std::set<Digest> allowed_;
  fs::path scratch_, bodies_path_;
  std::map<Digest, const WheelFile*> by_digest_;                         // of the base
  std::map<std::pair<Scheme, std::string>, const WheelFile*> by_place_;  // the same
  std::string lines_, bones_;
  std::optional<OutputFile> bodies_;
  std::uint64_t done_ = 0;  // of the archive
  WheelPatch made_;
};

}  // namespace

std::optional<WheelPatch> make_wheel_patch(const PublishedWheel& wheel, const PublishedWheel& base,
                                           const fs::path& scratch, const fs::path& out,
                                           const std::function<void(std::uint64_t)>& progress) {
  PatchMaker maker(wheel, base, scratch);
  maker.add_members(progress);
  return maker.write(out);
}

}  // namespace sealift::bundle
