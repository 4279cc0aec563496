// SPDX-License-Identifier: Apache-2.0
// Hexadecimal and base64; see bytes.hpp.
#include "sealift/bundle/core/bytes.hpp"

namespace sealift::bundle {
namespace {

std::string_view alphabet(Base64 kind) {
  return kind == Base64::Standard ? "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
                                  : "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
}

}  // namespace

std::string to_hex(ByteView bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text(bytes.size() * 2, '\0');
  char* to = text.data();
  for (const std::byte byte : bytes) {
    *to++ = kDigits[std::to_integer<unsigned>(byte) >> 4];
    *to++ = kDigits[std::to_integer<unsigned>(byte) & 15];
  }
  return text;
}

std::optional<Bytes> from_hex(std::string_view text) {
  const auto value = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; };
  if (text.size() % 2 != 0) return std::nullopt;
  Bytes bytes;
  bytes.reserve(text.size() / 2);
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const int high = value(text[i]), low = value(text[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes.push_back(static_cast<std::byte>(high * 16 + low));
  }
  return bytes;
}

std::string to_base64(ByteView bytes, Base64 kind) {
  const std::string_view digits = alphabet(kind);
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = bytes.size() - i < 3 ? bytes.size() - i : 3;
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k)
      group = group << 8 | (k < count ? std::to_integer<std::uint32_t>(bytes[i + k]) : 0);
    for (std::size_t k = 0; k < 4; ++k) {
      if (k <= count)
        text.push_back(digits[group >> (18 - 6 * k) & 63]);
      else if (kind == Base64::Standard)
        text.push_back('=');
    }
  }
  return text;
}

std::optional<Bytes> from_base64(std::string_view text, Base64 kind) {
  const std::string_view digits = alphabet(kind);
  std::string_view body = text;
  while (kind == Base64::Standard && !body.empty() && body.back() == '=' && text.size() - body.size() < 2)
    body.remove_suffix(1);
  Bytes bytes;
  bytes.reserve(body.size() / 4 * 3 + 2);
  std::uint32_t group = 0;
  int bits = 0;
  for (const char c : body) {
    const std::size_t value = digits.find(c);
    if (value == std::string_view::npos) return std::nullopt;
    group = (group << 6 | static_cast<std::uint32_t>(value)) & 0xffffff;
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes.push_back(static_cast<std::byte>(group >> bits & 255));
    }
  }
  const std::size_t padding = kind == Base64::Standard ? (4 - body.size() % 4) % 4 : 0;
  const bool canonical = body.size() % 4 != 1 && text.size() - body.size() == padding &&
                         (group & ((std::uint32_t{1} << bits) - 1)) == 0;  // no bits that say nothing
  if (!canonical) return std::nullopt;
  return bytes;
}

}  // namespace sealift::bundle
