// SPDX-License-Identifier: Apache-2.0
// A small UTF-8 reader.
// See texts.hpp.
// Overlong forms, surrogates and code points above U+10FFFF are no UTF-8: a browser would show something else.
#include "verify/wording/texts.hpp"

#include <array>
#include <cstdint>

namespace sealift::verify {
namespace {

constexpr const char* kReplacement = "\xEF\xBF\xBD";

struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 1;
  bool valid = false;
};

/// The character at the beginning of a text that is not empty.
Character first_of(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return {byte(0), 1, true};
  const std::size_t bytes = byte(0) >= 0xF0 ? 4 : byte(0) >= 0xE0 ? 3 : 2;
  if (byte(0) < 0xC2 || byte(0) > 0xF4 || text.size() < bytes) return {};
  std::uint32_t code = byte(0) & (0xFFu >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    code = (code << 6) | (byte(i) & 0x3F);
  }
  constexpr std::array<std::uint32_t, 5> kLeast{0, 0, 0x80, 0x800, 0x10000};
  const bool valid = code >= kLeast[bytes] && code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
  return valid ? Character{code, bytes, true} : Character{};
}

bool may_be_shown(std::uint32_t code) {
  if (code == '\n' || code == '\t') return true;
  if (code < 0x20 || (code >= 0x7F && code < 0xA0)) return false;
  const bool turns = code == 0x061C || code == 0x200E || code == 0x200F || (code >= 0x202A && code <= 0x202E) ||
                     (code >= 0x2066 && code <= 0x2069);
  const bool breaks = code == 0x2028 || code == 0x2029 || code == 0xFEFF || code == 0xFFFE || code == 0xFFFF;
  return !turns && !breaks;
}

}  // namespace

std::string clean(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const auto character = first_of(text);
    if (character.valid && may_be_shown(character.code)) {
      shown += text.substr(0, character.bytes);
    } else {
      shown += kReplacement;
    }
    text.remove_prefix(character.bytes);
  }
  return shown;
}

std::string escaped(std::string_view text) {
  std::string html;
  for (const char c : clean(text)) {
    switch (c) {
      case '&':
        html += "&amp;";
        break;
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '"':
        html += "&quot;";
        break;
      case '\'':
        html += "&#39;";
        break;
      default:
        html += c;
    }
  }
  return html;
}

std::string one_line(std::string_view text) {
  std::string line;
  for (const char c : clean(text)) {
    if (c == '\n')
      line += "⏎";
    else
      line += c == '\t' ? ' ' : c;
  }
  return line;
}

std::string shortened(std::string_view text, std::size_t characters) {
  auto whole = clean(text);
  std::size_t seen = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    if ((static_cast<unsigned char>(whole[i]) & 0xC0) == 0x80) continue;
    if (seen++ == characters) return whole.substr(0, i) + "…";
  }
  return whole;
}

}  // namespace sealift::verify
