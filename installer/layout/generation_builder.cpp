// SPDX-License-Identifier: Apache-2.0
// A free thread takes the next names in a row: neighbours share a folder, and only one thread at a time can add a name
// to a folder.
#include "installer/layout/generation_builder.hpp"

#include <fcntl.h>

#include <algorithm>
#include <optional>

#include "sealift/bundle/core/byte_source.hpp"
#include "sealift/bundle/core/parallel_for.hpp"

namespace sealift::installer {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

constexpr std::size_t kCopyPiece = std::size_t{1} << 20;
constexpr std::size_t kNeighbours = 50;

bundle::Digest digest_of(int file, const Place& place) {
  bundle::Bytes piece(static_cast<std::size_t>(std::clamp<std::uint64_t>(place.file.size, 1, kCopyPiece)));
  bundle::Hasher hasher;
  for (;;) {
    const ssize_t count = ::read(file, piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) bundle::throw_errno("a file of the store cannot be read", place.source());
    if (count == 0) return hasher.finish();
    hasher.update(bundle::ByteView(piece).first(static_cast<std::size_t>(count)));
  }
}

// Hashes a file of the store and returns the stamp that it had all the while. Throws Digest unless its bytes are what
// was unpacked.
Stamp check_bytes(const FileName& from, const Place& place) {
  const bundle::Descriptor file(
      ::openat(from.folder.descriptor(), from.name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat before {
  }, after{};
  if (!file && errno == ELOOP) refuse_changed(place, "a symbolic link");
  if (!file || ::fstat(file.get(), &before) != 0)
    bundle::throw_errno("a file of the store cannot be opened", place.source());
  if (!S_ISREG(before.st_mode)) refuse_changed(place, "no plain file");
  if (static_cast<std::uint64_t>(before.st_size) != place.file.size)
    refuse_changed(place, std::to_string(before.st_size) + " bytes");
  if (const bundle::Digest digest = digest_of(file.get(), place); digest != place.file.sha256)
    refuse_changed(place, "sha256 " + digest.hex());
  if (::fstat(file.get(), &after) != 0 || stamp_of(after) != stamp_of(before))
    refuse_changed(place, "a file that changes while it is read");
  return stamp_of(before);
}

void copy_file(const Place& place, const fs::path& to, Disk& disk) {
  const std::string from = place.source();
  bundle::FileSource source(from);
  bundle::Descriptor file = disk.create(to, place.file.executable ? 0555 : 0444);
  bundle::Hasher hasher;
  for (std::uint64_t at = 0; at < source.size();) {
    const bundle::ByteView piece = source.view(at, kCopyPiece);
    hasher.update(piece);
    disk.write(file, to, piece);
    at += piece.size();
  }
  if (const bundle::Digest digest = hasher.finish(); digest != place.file.sha256)
    refuse_changed(place, "sha256 " + digest.hex());
  disk.close(std::move(file), to);
}

// A path's folder and its last name.
std::pair<std::string_view, const char*> split_path(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == path.npos) return {"", path.c_str()};
  return {std::string_view(path).substr(0, slash), path.c_str() + slash + 1};
}

// Makes one thread's names; keeps the folders of its last file open. A file of the store is linked when it has its
// stamp; otherwise once its bytes are known to be right.
class NameMaker {
 public:
  NameMaker(const fs::path& generation, Disk& disk) : generation_(generation), disk_(disk) {}

  void put(const GenerationBuilder::Name& name) {
    const auto& [path, place] = name;
    if (place.type == Place::Type::Link)
      disk_.make_symlink(place.text, generation_ / path);
    else if (place.type == Place::Type::Text)
      disk_.write_new(generation_ / path, place.text, 0444);
    else if (!link(path, place))
      copy_file(place, generation_ / path, disk_);
  }

  std::vector<std::pair<Stamp*, Stamp>> take_hashed() { return std::move(hashed_); }

 private:
  bool link(const std::string& path, const Place& place) {
    const auto [from_folder, from] = split_path(place.file.path);
    if (!from_ || origin_ != place.origin.get() || from_folder_ != from_folder) {
      origin_ = place.origin.get();
      from_folder_ = from_folder;
      from_.emplace(disk_.open_folder(fs::path(origin_->item) / from_folder));
    }
    const auto [to_folder, to] = split_path(path);
    if (!to_ || to_folder_ != to_folder) {
      to_folder_ = to_folder;
      to_.emplace(disk_.open_folder(generation_ / to_folder));
    }
    const FileName source{.folder = *from_, .name = from};
    const std::optional<Stamp> fresh =
        has_its_stamp(source, place) ? std::nullopt : std::optional(check_bytes(source, place));
    if (!disk_.link(source, {.folder = *to_, .name = to})) return false;
    if (fresh) hashed_.emplace_back(place.file.stamp, *fresh);
    return true;
  }

  static bool has_its_stamp(const FileName& from, const Place& place) {
    struct stat status {};
    return place.file.stamp != nullptr && *place.file.stamp &&
           ::fstatat(from.folder.descriptor(), from.name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISREG(status.st_mode) && stamp_of(status) == *place.file.stamp;
  }

  const fs::path& generation_;
  Disk& disk_;
  const Place::Origin* origin_ = nullptr;
  std::string from_folder_, to_folder_;  // below the origin's item, below the generation
  std::optional<OpenFolder> from_, to_;
  std::vector<std::pair<Stamp*, Stamp>> hashed_;
};

}  // namespace

GenerationBuilder::GenerationBuilder(fs::path generation, Disk& disk, unsigned threads)
    : generation_(std::move(generation)), disk_(disk) {
  disk_.make_folder(generation_);
  if (threads > 1) bundle::start_threads(others_, threads - 1, [this] { make_names(); });
}

GenerationBuilder::~GenerationBuilder() {
  const std::lock_guard lock(guard_);
  closed_ = true;
  next_ = waiting_.size();
  changed_.notify_all();
}

void GenerationBuilder::add(const Name& name) {
  if (name.second.type == Place::Type::Folder) {
    disk_.make_folder(generation_ / name.first);
    return;
  }
  const std::lock_guard lock(guard_);
  if (failure_) return;  // finish() throws it
  waiting_.push_back(&name);
  if ((waiting_.size() - next_) % kNeighbours == 0) changed_.notify_one();
}

void GenerationBuilder::finish() {
  {
    const std::lock_guard lock(guard_);
    closed_ = true;
    changed_.notify_all();
  }
  make_names();
  others_.clear();  // joined
  if (failure_) std::rethrow_exception(failure_);
  for (const auto& [kept, stamp] : hashed_)
    if (kept != nullptr) *kept = stamp;
}

void GenerationBuilder::make_names() {
  NameMaker maker(generation_, disk_);
  std::vector<const Name*> mine;
  for (;;) {
    {
      std::unique_lock lock(guard_);
      changed_.wait(lock, [this] { return closed_ || waiting_.size() - next_ >= kNeighbours; });
      const std::size_t end = std::min(next_ + kNeighbours, waiting_.size());
      mine.assign(waiting_.begin() + static_cast<std::ptrdiff_t>(next_),
                  waiting_.begin() + static_cast<std::ptrdiff_t>(end));
      next_ = end;
    }
    if (mine.empty()) {
      const std::lock_guard lock(guard_);
      for (const auto& one : maker.take_hashed()) hashed_.push_back(one);
      return;
    }
    try {
      for (const Name* name : mine) maker.put(*name);
    } catch (...) {
      const std::lock_guard lock(guard_);
      if (!failure_) failure_ = std::current_exception();
      closed_ = true;
      next_ = waiting_.size();
      changed_.notify_all();
    }
  }
}

void build_generation(const Layout& layout, const fs::path& generation, Disk& disk, unsigned threads) {
  GenerationBuilder builder(generation, disk, threads);
  for (const Layout::value_type& name : layout) builder.add(name);
  builder.finish();
}

}  // namespace sealift::installer
