// SPDX-License-Identifier: Apache-2.0
// See svg.hpp.
#include "trainer/simulate/svg.hpp"

#include "sealift/bundle/core/html.hpp"

#include <array>
#include <cstdio>

namespace sealift::trainer {

std::string svg_number(double value, int digits) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

std::string svg_escaped(const std::string& text) {
  return bundle::html_escaped(text);
}

std::string svg_head(double height) {
  const auto size = svg_number(kSvgWidth, 0) + " " + svg_number(height, 0);
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + size +
         "\" font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";
}

std::string svg_text(double x, double y, const std::string& text, const std::string& more) {
  return "<text x=\"" + svg_number(x) + "\" y=\"" + svg_number(y) + "\"" + more + ">" + svg_escaped(text) + "</text>\n";
}

std::string svg_line(double x1, double y1, double x2, double y2, const char* stroke) {
  return "<line x1=\"" + svg_number(x1) + "\" y1=\"" + svg_number(y1) + "\" x2=\"" + svg_number(x2) + "\" y2=\"" +
         svg_number(y2) + "\" stroke=\"" + stroke + "\"/>\n";
}

}  // namespace sealift::trainer
