// SPDX-License-Identifier: Apache-2.0
// Unpacks one wheel entry into one store item: its files by scheme, relocatable programs, INSTALLER. RECORD is written
// with the generation, since its rows depend on where site-packages is.
#pragma once

#include "installer/store/item_writer.hpp"
#include "installer/store/store.hpp"
#include "sealift/bundle/verified_bundle.hpp"
#include "sealift/bundle/wheel/wheel.hpp"

namespace sealift::installer {

// A wheel's files with their places in the item claimed, to be written in any order: the item's record does not depend
// on the writer. The digests of the files are those of its RECORD, which the packer compared.
class ClaimedWheel {
 public:
  struct File {
    const bundle::WheelFile* packed;
    std::size_t number = 0;  // ItemWriter::claim_file
  };
  // Files that follow each other in the archive, for one thread.
  struct Part {
    std::size_t first = 0, count = 0;  // of files()
    std::uint64_t offset = 0;          // in the archive, bytes
    std::uint64_t stored = 0;          // bytes in the archive, to the end of the last file
    std::uint64_t size = 0;            // bytes of its files
  };

  // Opens the wheel and claims all places. Throws Format or Digest when chunks, archive or RECORD do not hold. `source`
  // is used here only.
  ClaimedWheel(bundle::ByteSource& source, const bundle::VerifiedBundle& bundle, const bundle::Entry& entry,
               ItemWriter& writer);
  ClaimedWheel(const ClaimedWheel&) = delete;
  ClaimedWheel& operator=(const ClaimedWheel&) = delete;

  // In the archive's order.
  const std::vector<File>& files() const { return files_; }
  // A file of more than `piece` stored bytes is a part of its own, others together make up about as much.
  std::vector<Part> parts(std::uint64_t piece) const;

  // Writes one file, read from `source`, by way of `output`. Safe from several threads, each with both for itself.
  void write(const File& file, bundle::ByteSource& source, FileOutput& output) const;
  // Writes what the wheel does not hold: programs of entry points, INSTALLER. Called once, by one thread.
  void write_own();

 private:
  struct Own {
    std::size_t number;
    std::string text;
  };

  void claim_own(const std::string& path, bool executable, std::string text);

  ItemWriter& writer_;
  std::string name_;
  bundle::Wheel wheel_;
  std::vector<File> files_;
  std::vector<Own> own_;
};

// Unpacks it with this thread. Of an entry that is carried as a patch, what is not carried is made from `store`, which
// has its base; where `store` is nullptr, it only gets its row in the record. Throws Format or Digest when chunks,
// archive or RECORD do not hold.
void unpack_wheel(const bundle::VerifiedBundle& bundle, const bundle::Entry& entry, ItemWriter& writer,
                  const Store* store = nullptr);

// The program of an entry point; it runs the python3 in its own folder.
std::string script_of(const bundle::EntryPoint& point);
// A script whose first line, "#!python", is replaced by lines that run the python3 in its own folder.
std::string relocatable_script(std::string_view text);

}  // namespace sealift::installer
