// SPDX-License-Identifier: Apache-2.0
// The only door to utf8proc: whether a text is UTF-8 in normal form C, and which texts differ in case only.
// Both sides of the gap ask here, so what one packs the other takes; the tables are the library's, not ours.
#pragma once

#include <string>
#include <string_view>

namespace sealift::bundle {

bool is_ascii(std::string_view text);
bool is_utf8(std::string_view text);

// What keeps `text` from being a name that looks and compares alike everywhere; null when nothing does.
const char* fault_of_name(std::string_view text);

// In normal form C, where letters are composed; `text` itself when it is no UTF-8.
std::string composed(std::string_view text);

// Equal for texts that a file system without upper and lower case takes for one.
std::string case_folded(std::string_view text);

// Equal for texts that any file system takes for one, and for more: what Unicode holds compatible counts as equal, and
// what it shows as nothing is left out.
std::string loosely_folded(std::string_view text);

// A letter as Unicode has it, or a byte that begins none.
struct Letter {
  char32_t point = 0;
  std::string_view bytes;
  bool valid = false;     // false: one byte of invalid UTF-8
  bool commands = false;  // control characters, separators of lines, and what turns round or is shown as nothing
};

// The first of a text that is not empty; it is taken from `text`.
Letter take_letter(std::string_view& text);

namespace detail {

// Unicode's category Cc; false for invalid UTF-8, which is_utf8 says.
bool has_control_character(std::string_view text);

}  // namespace detail

}  // namespace sealift::bundle
