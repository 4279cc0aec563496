// SPDX-License-Identifier: Apache-2.0
// Texts as a page may show them: valid UTF-8, no control characters, escaped, of sensible length.
// Below every page and picture: all that comes from a machine, a file or a child's output goes through here.
// Host names and error texts are chosen by others; on the paper that people sign they must not pose as the report.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sealift::verify {

/// `text` with U+FFFD for invalid UTF-8, control characters (but for \n and \t) and characters that turn the
/// direction of writing.
std::string clean(std::string_view text);

/// `clean`, and & < > " ' as HTML and SVG write them, in texts and in attributes.
std::string escaped(std::string_view text);

/// `clean`, with ⏎ for \n and a space for \t: cannot begin a line of a text page.
std::string one_line(std::string_view text);

/// The first `characters` of a clean text, and "…" when that is not all.
std::string shortened(std::string_view text, std::size_t characters);

}  // namespace sealift::verify
