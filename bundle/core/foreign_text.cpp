// SPDX-License-Identifier: Apache-2.0
// Letter by letter; see foreign_text.hpp.
#include "bundle/core/foreign_text.hpp"

#include <algorithm>

#include "bundle/core/unicode.hpp"

namespace sealift::bundle {
namespace {

bool is_line_or_tab(char32_t point) {
  return point == '\n' || point == '\t';
}

void add_hex(std::string& text, unsigned value, int digits) {
  static constexpr char kHex[] = "0123456789abcdef";
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) text += kHex[(value >> shift) & 15];
}

void add_escaped(std::string& text, const Letter& letter) {
  if (!letter.valid) {
    text += "\\x";
    return add_hex(text, static_cast<unsigned char>(letter.bytes[0]), 2);
  }
  auto point = static_cast<unsigned>(letter.point);
  text += "\\u";
  if (point > 0xffff) {  // JSON knows pairs of surrogates only
    point -= 0x10000;
    add_hex(text, 0xd800 + (point >> 10), 4);
    text += "\\u";
    point = 0xdc00 + (point & 0x3ff);
  }
  add_hex(text, point, 4);
}

std::string escaped(std::string_view text, bool lines_stay) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const Letter letter = take_letter(text);
    if (letter.valid && (!letter.commands || (lines_stay && is_line_or_tab(letter.point))))
      shown += letter.bytes;
    else
      add_escaped(shown, letter);
  }
  return shown;
}

}  // namespace

std::string terminal_text(std::string_view text) {
  return escaped(text, true);
}

std::string one_line(std::string_view text) {
  return escaped(text, false);
}

std::string page_text(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const Letter letter = take_letter(text);
    const bool mark = letter.point == 0xfffe || letter.point == 0xffff;  // of byte order
    const bool stays = letter.valid && !mark && (!letter.commands || is_line_or_tab(letter.point));
    shown += stays ? letter.bytes : "\xEF\xBF\xBD";
  }
  return shown;
}

std::string continued(std::string_view text, std::size_t least, std::size_t indent) {
  std::string shown;
  shown.reserve(text.size());
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    if (begin > 0) {
      shown += '\n';
      if (!line.empty() && std::min(line.find_first_not_of(' '), line.size()) < least) shown.append(indent, ' ');
    }
    shown += line;
    begin = end + 1;
  }
  return shown;
}

std::size_t whole_letters(std::string_view text) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if (byte < 0x80) break;
    if (byte < 0xc0) continue;  // goes on with a letter
    if (byte >= 0xf8) break;
    const std::size_t wanted = byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
    return wanted > back ? text.size() - back : text.size();
  }
  return text.size();
}

}  // namespace sealift::bundle
