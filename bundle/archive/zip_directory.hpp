// SPDX-License-Identifier: Apache-2.0
// The directory of a zip archive and the headers of its members, accepted only where every zip program reads the same:
// one end of the directory, no gaps, no comments but the archive's, no second name or size that differs from the first.
// Format: PKWARE APPNOTE 6.3.9. Where installers were known to differ: CVE-2025-54368.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "sealift/bundle/archive/zip_member.hpp"
#include "sealift/bundle/core/byte_source.hpp"

namespace sealift::bundle::detail {

// A little-endian number of `size` bytes.
inline std::uint64_t zip_number(ByteView bytes, std::size_t offset, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t i = size; i-- > 0;) value = value << 8 | std::to_integer<std::uint64_t>(bytes[offset + i]);
  return value;
}

// Throws Format, naming the archive and, if there is one, the member.
[[noreturn]] void refuse_zip(const ByteSource& source, const char* why, std::string_view member = {});

// The archive's files in the directory's order, each with the folders that precede it: their headers are read when the
// file's bytes are, so opening an archive does not seek through it. Throws Format.
std::vector<ZipMember> read_zip_directory(ByteSource& source);

// Where a member's bytes begin, and whether sizes that stand behind them have 8 bytes.
struct ZipBody {
  std::uint64_t begin;
  bool wide;
};

// Throws Format unless the member's own header and the headers of the folders right before it agree with the directory.
ZipBody check_zip_header(ByteSource& source, const ZipMember& member);
// Throws Format unless the data descriptor behind the member's bytes agrees with the directory, and the next member
// begins right there. Called when the bytes were read, so that an archive is read forwards.
void check_zip_end(ByteSource& source, const ZipMember& member, const ZipBody& body);

}  // namespace sealift::bundle::detail
