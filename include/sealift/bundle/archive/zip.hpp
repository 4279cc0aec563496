// SPDX-License-Identifier: Apache-2.0
// The members of a zip archive and their bytes, stored or deflated. An archive is acceptable only where every zip
// program reads the same. A member's own header is checked when its bytes are asked for, so opening an archive costs
// reading its directory and not a seek for every member.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sealift/bundle/archive/zip_member.hpp"
#include "sealift/bundle/core/byte_source.hpp"

namespace sealift::bundle {

class ZipReader {
 public:
  // Reads the directory; throws Format. `source` must outlive the reader.
  explicit ZipReader(ByteSource& source);

  // The files in the directory's order; folders are not listed.
  const std::vector<ZipMember>& members() const { return members_; }

  // Gives the member's bytes to `sink` in order; throws Format unless size and CRC-32 are those of the directory.
  // What the sink got must not be used before this returns.
  void extract(const ZipMember& member, const ByteSink& sink);
  // The same by way of another source of the archive's bytes: for several threads, each with a source of its own.
  static void extract_from(ByteSource& source, const ZipMember& member, const ByteSink& sink);
  // The same as text; throws Format when the member is larger than `max_size` bytes.
  std::string extract_text(const ZipMember& member, std::uint64_t max_size);
  // The first `count` bytes, or all when there are fewer; not checked against the CRC-32.
  std::string start_of(const ZipMember& member, std::size_t count);
  // Where the member's bytes begin in the archive; throws Format unless its own header agrees with the directory.
  static std::uint64_t begin_of(ByteSource& source, const ZipMember& member);

 private:
  ByteSource& source_;
  std::vector<ZipMember> members_;
};

}  // namespace sealift::bundle
