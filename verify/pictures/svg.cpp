// SPDX-License-Identifier: Apache-2.0
// Writes SVG.
// See svg.hpp.
// Texts are escaped here, so that no picture can forget it.
#include "verify/pictures/svg.hpp"

#include "verify/wording/texts.hpp"

#include <cstdio>

namespace sealift::verify {

std::string px(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

std::string text_at(double x, double y, const char* anchor, const std::string& text, const std::string& more) {
  return "<text x=\"" + px(x) + "\" y=\"" + px(y) + "\" text-anchor=\"" + anchor + "\"" + more + ">" + escaped(text) +
         "</text>";
}

}  // namespace sealift::verify
