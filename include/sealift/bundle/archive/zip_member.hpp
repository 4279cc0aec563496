// SPDX-License-Identifier: Apache-2.0
// One file of a zip archive, as the archive's directory describes it: a plain value that zip.hpp lists and takes back
// when the file's bytes are asked for. Apart from the reader, since the directory's own reader needs it, too.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sealift::bundle {

// Offsets and sizes in bytes.
struct ZipMember {
  std::string name;  // a SafePath's text
  std::uint64_t size = 0;
  std::uint64_t compressed_size = 0;
  std::uint64_t header_offset = 0;
  std::uint64_t end_offset = 0;  // where the next member, or the directory, begins
  std::uint32_t crc32 = 0;
  std::uint16_t flags = 0;
  bool deflated = false;
  bool executable = false;           // by its Unix mode
  std::vector<ZipMember> folders{};  // right before it: their headers are checked with its own
};

}  // namespace sealift::bundle
