// SPDX-License-Identifier: Apache-2.0
// Writes the files of one entry below a new staging folder and makes the item record. What is written is hashed only
// where the entry brings no digest of it. Payload bytes reach the disk only through here: a path is made once, and only
// below folders made here.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <optional>

#include "installer/disk/file_output.hpp"
#include "installer/store/item_record.hpp"
#include "sealift/bundle/core/byte_source.hpp"
#include "sealift/bundle/host/progress.hpp"

namespace sealift::installer {

class ItemWriter {
 public:
  // The signed sizes: no archive may take more of the disk than was planned.
  struct Limit {
    std::uint64_t bytes = 0;
    std::uint64_t names = 0;  // files, folders and links
  };

  // Makes `folder`, which must not exist. `record` describes the entry; its lists are filled here.
  ItemWriter(Disk& disk, std::filesystem::path folder, ItemRecord record, Limit limit, bundle::Progress& progress);

  // Paths are relative and safe (SafePath's text). All throw Format when a path was made already, would lie below a
  // file or a symbolic link, or would exceed the limit.
  void add_folder(const std::string& path);
  void add_link(const std::string& path, const std::string& target);
  // `known`: the file's SHA-256, where the entry says it; otherwise its bytes are hashed.
  void begin_file(const std::string& path, bool executable, const std::optional<bundle::Digest>& known = {});
  void append(bundle::ByteView bytes);
  void end_file();
  // `produce` passes the bytes to its sink; where it throws, nothing is recorded. Their digest is what the entry says.
  void add_file(const std::string& path, bool executable, const bundle::Digest& sha256,
                const std::function<void(const bundle::ByteSink&)>& produce);
  // The two halves of add_file, for an item that several threads fill. One thread claims all files, and so decides
  // their order in the record; then each is filled once, by any thread, by way of an output of its own.
  std::size_t claim_file(const std::string& path, bool executable);
  void fill_file(std::size_t file, FileOutput& output, const bundle::Digest& sha256,
                 const std::function<void(const bundle::ByteSink&)>& produce);
  // Instead of filling a claimed file: its row in the record alone, where nothing else of the item is wanted.
  void describe_file(std::size_t file, std::uint64_t size, const bundle::Digest& sha256);
  void add_text(const std::string& path, bool executable, std::string_view text);

  void set_dist_info(const std::string& dist_info) { record_.dist_info = dist_info; }
  Disk& disk() const { return disk_; }
  // Writes record.json. Nothing can be added afterwards.
  void finish();
  // After finish(): the stamps of the record's files, in their order, as each was when its last byte was written.
  std::vector<Stamp> take_stamps() { return std::move(stamps_); }
  const bundle::Digest& record_digest() const { return record_digest_; }

 private:
  enum class Made { File, Folder, Link };

  void claim(const std::string& path, Made what);
  void make_parents(const std::string& path);
  void spend_name(const std::string& path);
  void spend_bytes(const std::string& path, std::size_t count);
  Stamp close(FileOutput& output, const std::string& path);
  [[noreturn]] void refuse_excess(const std::string& path, std::uint64_t limit, const char* unit) const;

  Disk& disk_;
  std::filesystem::path folder_;
  ItemRecord record_;
  Limit limit_;
  std::atomic<std::uint64_t> written_{0};
  bundle::Progress& progress_;
  std::map<std::string, Made> made_;
  std::optional<StoredFile> open_;
  std::optional<bundle::Digest> known_;  // of the open file
  std::vector<Stamp> stamps_;
  bundle::Digest record_digest_;
  FileOutput output_;
  bundle::Hasher hasher_;
};

}  // namespace sealift::installer
