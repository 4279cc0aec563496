// SPDX-License-Identifier: Apache-2.0
// Nobody else writes into the staging folder, so what was made is known from memory: no path is ever looked up on disk
// and no symbolic link is ever followed, whatever order an archive puts its members in.
#include "installer/item_writer.hpp"

namespace sealift::installer {

using bundle::Error;
using bundle::ErrorCode;

namespace {
constexpr mode_t kFileMode = 0444;
constexpr mode_t kProgramMode = 0555;
}  // namespace

ItemWriter::ItemWriter(Disk& disk, std::filesystem::path folder, ItemRecord record, Progress& progress)
    : disk_(disk), folder_(std::move(folder)), record_(std::move(record)), progress_(progress) {
  disk_.make_folder(folder_);
}

void ItemWriter::claim(const std::string& path, Made what) {
  make_parents(path);
  if (!made_.emplace(path, what).second)
    throw Error(ErrorCode::Format, {.what = "an archive holds a path twice",
                                    .where = record_.name + ", " + bundle::SafePath::printable(path),
                                    .next = "this entry was not made by sealift-pack; do not use it"});
}

void ItemWriter::make_parents(const std::string& path) {
  for (std::size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    const std::string parent = path.substr(0, slash);
    const auto [there, fresh] = made_.emplace(parent, Made::Folder);
    if (there->second != Made::Folder)
      throw Error(ErrorCode::Format, {.what = "an archive puts a file below something that is no folder",
                                      .where = record_.name + ", " + bundle::SafePath::printable(path),
                                      .expected = bundle::SafePath::printable(parent) + " to be a folder",
                                      .got = there->second == Made::Link ? "a symbolic link" : "a file",
                                      .next = "this entry was not made by sealift-pack; do not use it"});
    if (!fresh) continue;
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

void ItemWriter::begin_file(const std::string& path, bool executable) {
  end_file();
  claim(path, Made::File);
  file_ = disk_.create(folder_ / path, executable ? kProgramMode : kFileMode);
  open_ = StoredFile{.path = path, .executable = executable};
}

void ItemWriter::append(bundle::ByteView bytes) {
  disk_.write(file_, folder_ / open_->path, bytes);
  hasher_.update(bytes);
  open_->size += bytes.size();
  progress_.add(bytes.size());
}

void ItemWriter::end_file() {
  if (!open_) return;
  open_->sha256 = hasher_.finish();
  record_.files.push_back(*std::move(open_));
  open_.reset();
  file_ = bundle::Descriptor();
}

void ItemWriter::add_file(const std::string& path, bool executable,
                          const std::function<void(const bundle::ByteSink&)>& produce) {
  begin_file(path, executable);
  produce([this](bundle::ByteView piece) { append(piece); });
  end_file();
}

void ItemWriter::add_text(const std::string& path, bool executable, std::string_view text) {
  add_file(path, executable, [text](const bundle::ByteSink& sink) { sink(bundle::as_bytes(text)); });
}

void ItemWriter::finish() {
  end_file();
  disk_.write_new(folder_ / kRecordName, write_item_record(record_), kFileMode);
}

}  // namespace sealift::installer
