// SPDX-License-Identifier: Apache-2.0
// One header block of a tar archive, and the records of a pax header. tar.cpp puts them together; the tests use them to
// make headers that write_tar_header would not write.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sealift::bundle::detail {

inline constexpr std::size_t kTarHeaderSize = 512;                            // bytes: one block of the archive
inline constexpr std::uint64_t kMaxUstarSize = (std::uint64_t{1} << 33) - 1;  // larger ones need a pax record

struct TarHeader {
  std::array<char, kTarHeaderSize> raw{};

  // A text field, up to its first NUL.
  std::string_view text(std::size_t offset, std::size_t size) const;
  void put(std::size_t offset, std::size_t size, std::string_view value);
  // Octal, zero-padded, with a closing NUL.
  void put_octal(std::size_t offset, std::size_t size, std::uint64_t value);
  // The sum of all bytes, with the checksum field read as spaces.
  std::uint64_t checksum() const;
};

// A complete header block; `type` is ustar's typeflag.
TarHeader tar_header(std::string_view path, char type, std::uint64_t size, bool executable, std::string_view target);

// "LENGTH key=value\n", where LENGTH counts itself.
std::string pax_record(std::string_view key, std::string_view value);

}  // namespace sealift::bundle::detail
