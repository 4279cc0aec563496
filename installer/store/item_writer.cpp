// SPDX-License-Identifier: Apache-2.0
// Nothing else writes into the staging folder, so what was made is known from memory: no path is resolved on disk and
// no symbolic link is followed, whatever the order of an archive's members.
#include "installer/store/item_writer.hpp"

#include <unistd.h>

#include <functional>

namespace sealift::installer {

using bundle::Error;
using bundle::ErrorCode;

namespace {
constexpr mode_t kFileMode = 0444;
constexpr mode_t kProgramMode = 0555;
}  // namespace

ItemWriter::ItemWriter(Disk& disk, std::filesystem::path folder, ItemRecord record, Limit limit,
                       bundle::Progress& progress)
    : disk_(disk),
      folder_(std::move(folder)),
      record_(std::move(record)),
      limit_(limit),
      progress_(progress),
      output_(disk) {
  disk_.make_folder(folder_);
}

void ItemWriter::refuse_excess(const std::string& path, std::uint64_t limit, const char* unit) const {
  throw Error(ErrorCode::Format, {.what = "an archive unpacks to more than was signed",
                                  .where = record_.name + ", " + bundle::SafePath::printable(path),
                                  .expected = "at most " + std::to_string(limit) + " " + unit,
                                  .next = "this entry was not made by sealift-pack; do not use it"});
}

void ItemWriter::spend_name(const std::string& path) {
  if (made_.size() > limit_.names) refuse_excess(path, limit_.names, "files, folders and links");
}

void ItemWriter::claim(const std::string& path, Made what) {
  make_parents(path);
  if (!made_.emplace(path, what).second)
    throw Error(ErrorCode::Format, {.what = "an archive holds a path twice",
                                    .where = record_.name + ", " + bundle::SafePath::printable(path),
                                    .next = "this entry was not made by sealift-pack; do not use it"});
  spend_name(path);
}

void ItemWriter::make_parents(const std::string& path) {
  for (std::size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    const std::string parent = path.substr(0, slash);
    const auto [there, fresh] = made_.emplace(parent, Made::Folder);
    if (there->second != Made::Folder)
      throw Error(ErrorCode::Format, {.what = "an archive puts a file below something other than a folder",
                                      .where = record_.name + ", " + bundle::SafePath::printable(path),
                                      .expected = bundle::SafePath::printable(parent) + " to be a folder",
                                      .got = there->second == Made::Link ? "a symbolic link" : "a file",
                                      .next = "this entry was not made by sealift-pack; do not use it"});
    if (!fresh) continue;
    spend_name(path);
    disk_.make_folder(folder_ / parent);
    record_.folders.push_back(parent);
  }
}

void ItemWriter::add_folder(const std::string& path) {
  const auto there = made_.find(path);
  if (there == made_.end() || there->second != Made::Folder) {
    claim(path, Made::Folder);
    disk_.make_folder(folder_ / path);
    record_.folders.push_back(path);
  }
}

void ItemWriter::add_link(const std::string& path, const std::string& target) {
  claim(path, Made::Link);
  disk_.make_symlink(target, folder_ / path);
  record_.links.push_back({.path = path, .target = target});
}

void ItemWriter::begin_file(const std::string& path, bool executable, const std::optional<bundle::Digest>& known) {
  end_file();
  known_ = known;
  claim(path, Made::File);
  output_.begin(disk_.create(folder_ / path, executable ? kProgramMode : kFileMode), folder_ / path);
  open_ = StoredFile{.path = path, .executable = executable};
}

void ItemWriter::spend_bytes(const std::string& path, std::size_t count) {
  if (written_.fetch_add(count) + count > limit_.bytes) refuse_excess(path, limit_.bytes, "bytes");
}

void ItemWriter::append(bundle::ByteView bytes) {
  spend_bytes(open_->path, bytes.size());
  output_.append(bytes);
  open_->size += bytes.size();
  progress_.add(bytes.size());
  if (!known_) hasher_.update(bytes);
}

// Returns the file's stamp from when its last byte was written.
Stamp ItemWriter::close(FileOutput& output, const std::string& path) {
  const Stamp stamp = output.finish();
  struct stat status {};
  const std::filesystem::path there = folder_ / path;
  return disk_.protect(there) && ::lstat(there.c_str(), &status) == 0 ? stamp_of(status) : stamp;
}

void ItemWriter::end_file() {
  if (!open_) return;
  stamps_.push_back(close(output_, open_->path));
  open_->sha256 = known_ ? *known_ : hasher_.finish();
  record_.files.push_back(*std::move(open_));
  open_.reset();
}

void ItemWriter::add_file(const std::string& path, bool executable, const bundle::Digest& sha256,
                          const std::function<void(const bundle::ByteSink&)>& produce) {
  end_file();
  fill_file(claim_file(path, executable), output_, sha256, produce);
}

std::size_t ItemWriter::claim_file(const std::string& path, bool executable) {
  claim(path, Made::File);
  record_.files.push_back({.path = path, .executable = executable});
  stamps_.emplace_back();
  return record_.files.size() - 1;
}

void ItemWriter::fill_file(std::size_t file, FileOutput& output, const bundle::Digest& sha256,
                           const std::function<void(const bundle::ByteSink&)>& produce) {
  StoredFile& made = record_.files[file];
  const std::filesystem::path there = folder_ / made.path;
  output.begin(disk_.create(there, made.executable ? kProgramMode : kFileMode), there);
  produce([&](bundle::ByteView piece) {
    spend_bytes(made.path, piece.size());
    output.append(piece);
    made.size += piece.size();
    progress_.add(piece.size());
  });
  stamps_[file] = close(output, made.path);
  made.sha256 = sha256;
}

void ItemWriter::describe_file(std::size_t file, std::uint64_t size, const bundle::Digest& sha256) {
  spend_bytes(record_.files[file].path, static_cast<std::size_t>(size));
  record_.files[file].size = size;
  record_.files[file].sha256 = sha256;
}

void ItemWriter::add_text(const std::string& path, bool executable, std::string_view text) {
  begin_file(path, executable);
  append(bundle::as_bytes(text));
  end_file();
}

void ItemWriter::finish() {
  end_file();
  const std::string text = write_item_record(record_);
  disk_.write_new(folder_ / kRecordName, text, kFileMode);
  record_digest_ = bundle::sha256(bundle::as_bytes(text));
}

}  // namespace sealift::installer
