// SPDX-License-Identifier: Apache-2.0
#include "bundle/archive/tar_header.hpp"

#include <algorithm>
#include <cstring>

namespace sealift::bundle::detail {

std::string_view TarHeader::text(std::size_t offset, std::size_t size) const {
  const std::string_view field(raw.data() + offset, size);
  return field.substr(0, field.find('\0'));
}

void TarHeader::put(std::size_t offset, std::size_t size, std::string_view value) {
  std::memcpy(raw.data() + offset, value.data(), std::min(size, value.size()));
}

void TarHeader::put_octal(std::size_t offset, std::size_t size, std::uint64_t value) {
  for (std::size_t i = size - 1; i-- > 0; value >>= 3) raw[offset + i] = static_cast<char>('0' + (value & 7));
}

std::uint64_t TarHeader::checksum() const {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kTarHeaderSize; ++i)
    sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(raw[i]);
  return sum;
}

TarHeader tar_header(std::string_view path, char type, std::uint64_t size, bool executable, std::string_view target) {
  TarHeader header;
  header.put(0, 100, path);
  header.put_octal(100, 8, executable || type == '5' ? 0755 : type == '2' ? 0777 : 0644);
  header.put_octal(108, 8, 0);
  header.put_octal(116, 8, 0);
  header.put_octal(124, 12, size > kMaxUstarSize ? 0 : size);
  header.put_octal(136, 12, 0);
  header.raw[156] = type;
  header.put(157, 100, target);
  header.put(257, 8, std::string_view("ustar\00000", 8));
  header.put_octal(148, 7, header.checksum());
  header.raw[155] = ' ';
  return header;
}

std::string pax_record(std::string_view key, std::string_view value) {
  const std::size_t body = key.size() + value.size() + 3;
  std::size_t length = body + 1;
  while (std::to_string(length).size() + body != length) length = std::to_string(length).size() + body;
  return std::to_string(length) + " " + std::string(key) + "=" + std::string(value) + "\n";
}

}  // namespace sealift::bundle::detail
