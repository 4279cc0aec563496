// SPDX-License-Identifier: Apache-2.0
// Asks utf8proc; see unicode.hpp. ASCII, which nearly every name is, is answered without it.
#include "bundle/core/unicode.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>

namespace sealift::bundle {
namespace {

// `text` mapped as the options of utf8proc say; nothing when it is no UTF-8.
std::optional<std::string> mapped(std::string_view text, int options) {
  utf8proc_uint8_t* raw = nullptr;
  const auto* input = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  const utf8proc_ssize_t size = utf8proc_map(input, static_cast<utf8proc_ssize_t>(text.size()), &raw,
                                             static_cast<utf8proc_option_t>(UTF8PROC_STABLE | options));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(raw, &std::free);
  if (size < 0) return std::nullopt;
  return std::string(reinterpret_cast<const char*>(raw), static_cast<std::size_t>(size));
}

// Control characters, what separates lines beside them, and the marks and overrides of a direction (UAX #9).
bool is_command(utf8proc_int32_t point) {
  if (point == '\n' || point == '\t') return false;
  return utf8proc_category(point) == UTF8PROC_CATEGORY_CC || point == 0x061c || point == 0x200e || point == 0x200f ||
         (point >= 0x2028 && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069);
}

struct Letter {
  utf8proc_int32_t point = 0;
  std::string_view bytes;
  bool valid = false;
};

// The first letter of a text that is not empty, or a byte that begins none; it is taken from `text`.
Letter take_letter(std::string_view& text) {
  Letter letter;
  const utf8proc_ssize_t used = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                                 static_cast<utf8proc_ssize_t>(text.size()), &letter.point);
  letter.valid = used > 0;
  letter.bytes = text.substr(0, letter.valid ? static_cast<std::size_t>(used) : 1);
  text.remove_prefix(letter.bytes.size());
  return letter;
}

}  // namespace

bool detail::has_control_character(std::string_view text) {
  const auto* at = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  for (auto left = static_cast<utf8proc_ssize_t>(text.size()); left > 0;) {
    utf8proc_int32_t point = 0;
    const utf8proc_ssize_t used = utf8proc_iterate(at, left, &point);
    if (used <= 0) return false;
    if (utf8proc_category(point) == UTF8PROC_CATEGORY_CC) return true;
    at += used;
    left -= used;
  }
  return false;
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

bool is_utf8(std::string_view text) {
  return is_ascii(text) || mapped(text, 0).has_value();
}

const char* fault_of_name(std::string_view text) {
  if (is_ascii(text)) return nullptr;
  const std::optional<std::string> composed = mapped(text, UTF8PROC_COMPOSE);
  if (!composed) return "it is not UTF-8";
  if (*composed != text) return "it is not in Unicode's normal form C";
  return detail::has_control_character(text) ? "it holds a control character" : nullptr;
}

std::string terminal_text(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const Letter letter = take_letter(text);
    if (letter.valid && !is_command(letter.point)) {
      shown += letter.bytes;
      continue;
    }
    const unsigned value =
        letter.valid ? static_cast<unsigned>(letter.point) : static_cast<unsigned char>(letter.bytes[0]);
    shown += letter.valid ? "\\u" : "\\x";
    for (int shift = letter.valid ? 12 : 4; shift >= 0; shift -= 4) shown += kHex[(value >> shift) & 15];
  }
  return shown;
}

std::string page_text(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const Letter letter = take_letter(text);
    const bool mark = letter.point == 0xfeff || letter.point == 0xfffe || letter.point == 0xffff;  // of byte order
    shown += letter.valid && !mark && !is_command(letter.point) ? letter.bytes : "\xEF\xBF\xBD";
  }
  return shown;
}

std::string loosely_folded(std::string_view text) {
  if (is_ascii(text)) return case_folded(text);
  constexpr int kLoosely = UTF8PROC_COMPOSE | UTF8PROC_COMPAT | UTF8PROC_CASEFOLD | UTF8PROC_IGNORE;
  return mapped(text, kLoosely).value_or(std::string(text));
}

std::string case_folded(std::string_view text) {
  if (!is_ascii(text)) return mapped(text, UTF8PROC_COMPOSE | UTF8PROC_CASEFOLD).value_or(std::string(text));
  std::string folded(text);
  for (char& c : folded)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return folded;
}

}  // namespace sealift::bundle
