// SPDX-License-Identifier: Apache-2.0
// The one writer of text that strangers chose: names on a medium, fields of packages, answers of servers. Every
// message, page and document goes through one of these. All go by one rule of what commands a terminal or a reader's
// eye: control characters, separators of lines, and characters that turn the direction of writing or are shown as
// nothing (Unicode's categories Cc, Zl, Zp and Cf).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sealift::bundle {

// As a terminal may be given it: such a character is written as "\u001b" or "\u202e", which is right in JSON too, and
// an invalid byte as "\xff". Line ends and tabs stay.
std::string terminal_text(std::string_view text);

// The same with line ends and tabs written as "\u000a" and "\u0009": a value that cannot begin a line of its own.
std::string one_line(std::string_view text);

// As a page may show it: U+FFFD in place of each such character and byte. Line ends and tabs stay. html_escaped
// (core/html.hpp) does this first.
std::string page_text(std::string_view text);

// A text whose further lines all begin with `least` blanks or more; lines with fewer get `indent` in front. So a
// line that came with a foreign value is seen to be the value's, and is taken for no line of ours.
std::string continued(std::string_view text, std::size_t least, std::size_t indent);

// How many bytes of `text` are whole letters, or part of none: what is cut in the middle of one ends before it.
std::size_t whole_letters(std::string_view text);

}  // namespace sealift::bundle
