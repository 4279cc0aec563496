// SPDX-License-Identifier: Apache-2.0
// How bytes are passed around and written as text: spans, hexadecimal, base64.
// Decoders are strict, since what they read may be hostile: one text form per value, anything else is refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sealift::bundle {

using Bytes = std::vector<std::byte>;
using ByteView = std::span<const std::byte>;

// The same memory, seen as bytes and as text; nothing is copied.
inline ByteView as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}
inline std::string_view as_text(ByteView bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Lower-case hexadecimal.
std::string to_hex(ByteView bytes);
// The inverse of to_hex; upper case and odd lengths are refused.
std::optional<Bytes> from_hex(std::string_view text);

enum class Base64 {
  Standard,  // RFC 4648 section 4, padded: DSSE
  UrlNoPad,  // RFC 4648 section 5 without padding: wheel RECORD
};

std::string to_base64(ByteView bytes, Base64 kind = Base64::Standard);
// Accepts exactly what to_base64 writes: no white space, no missing padding, no stray bits in the last digit.
std::optional<Bytes> from_base64(std::string_view text, Base64 kind = Base64::Standard);

}  // namespace sealift::bundle
