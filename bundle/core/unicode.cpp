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

Letter take_letter(std::string_view& text) {
  Letter letter;
  if (const auto first = static_cast<unsigned char>(text.front()); first < 0x80) {
    letter = {.point = first, .bytes = text.substr(0, 1), .valid = true, .commands = first < 0x20 || first == 0x7f};
  } else {
    utf8proc_int32_t point = 0;
    const utf8proc_ssize_t used = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                                   static_cast<utf8proc_ssize_t>(text.size()), &point);
    letter.valid = used > 0;
    letter.bytes = text.substr(0, letter.valid ? static_cast<std::size_t>(used) : 1);
    if (letter.valid) {
      const utf8proc_category_t category = utf8proc_category(point);
      letter.point = static_cast<char32_t>(point);
      letter.commands = category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF ||
                        category == UTF8PROC_CATEGORY_ZL || category == UTF8PROC_CATEGORY_ZP;
    }
  }
  text.remove_prefix(letter.bytes.size());
  return letter;
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

bool is_utf8(std::string_view text) {
  return is_ascii(text) || mapped(text, 0).has_value();
}

const char* fault_of_name(std::string_view text) {
  if (is_ascii(text)) return nullptr;
  if (!is_utf8(text)) return "it is not UTF-8";
  if (composed(text) != text) return "it is not in Unicode's normal form C";
  return detail::has_control_character(text) ? "it holds a control character" : nullptr;
}

std::string composed(std::string_view text) {
  return is_ascii(text) ? std::string(text) : mapped(text, UTF8PROC_COMPOSE).value_or(std::string(text));
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
