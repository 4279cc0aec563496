// SPDX-License-Identifier: Apache-2.0
// The tar that Sealift writes and reads: POSIX ustar with pax headers for long names and large sizes; files, folders
// and symbolic links only, no owners, no times. Stock tar reads it; what stock tar writes beyond that is refused.
// The reader takes one spelling: it writes each header again and compares, so no two tars can read a field differently.
// Format: POSIX.1-2017, pax "ustar Interchange Format".
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "sealift/bundle/core/bytes.hpp"
#include "sealift/bundle/core/digest.hpp"

namespace sealift::bundle {

inline constexpr std::size_t kTarBlock = 512;  // bytes

enum class TarType { File, Folder, Link };

struct TarMember {
  std::string path;  // a SafePath's text
  TarType type = TarType::File;
  std::uint64_t size = 0;  // bytes of a File
  bool executable = false;
  std::string target;   // of a Link
  std::string comment;  // of pax: programs pass over it; a reader takes none but digest_comment's
};

// What precedes a member's bytes. The bytes follow it, then tar_padding() zeros.
std::string write_tar_header(const TarMember& member);
// The same for a header that begins at `offset` of the archive, with a comment that makes the member's bytes begin at a
// multiple of `alignment`, which is a multiple of kTarBlock and at most 4096.
std::string write_aligned_tar_header(TarMember member, std::uint64_t offset, std::size_t alignment);

// The comment by which a tree's packer says a file's SHA-256, which it compared; an installer need not compute it
// again.
std::string digest_comment(const Digest& sha256);
// The inverse of digest_comment; every other text is nothing.
std::optional<Digest> digest_of_comment(std::string_view comment);

// How many zero bytes fill the last block of a file of `size` bytes.
inline std::size_t tar_padding(std::uint64_t size) {
  return static_cast<std::size_t>((kTarBlock - size % kTarBlock) % kTarBlock);
}

// The two zero blocks that close an archive.
inline std::string tar_end() {
  return std::string(2 * kTarBlock, '\0');
}

// Reads an archive that arrives in pieces of any size. Throws Format on anything that write_tar_header would not write.
// Can be neither copied nor moved.
class TarReader {
 public:
  struct Handler {
    std::function<void(const TarMember&)> begin;  // a safe path, and for a Link a target that stays inside
    std::function<void(ByteView)> data;           // bytes of the File that began last
  };

  // `where` names the archive in messages.
  TarReader(Handler handler, std::string where);
  TarReader(const TarReader&) = delete;
  TarReader& operator=(const TarReader&) = delete;
  ~TarReader();

  // Reads on; calls the handler for what is complete.
  void feed(ByteView bytes);
  // Called at the end of the bytes: throws Format unless the archive is closed and no chain of links leaves it.
  void finish() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace sealift::bundle
