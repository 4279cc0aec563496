// SPDX-License-Identifier: Apache-2.0
// See chart.hpp. Lines differ in their dashes too, so that no meaning hangs on a colour alone.
#include "tests/train/simulate/chart.hpp"

#include "trainer/simulate/svg.hpp"

#include <array>
#include <cmath>
#include <set>

namespace sealift::trainer {

std::string chart_svg(const ChartText& text, const std::vector<Curve>& curves, double top) {
  constexpr double kHeight = 420, kBottom = 360, kUp = 50, kSide = 70;
  std::set<double> xs;
  for (const auto& curve : curves) {
    for (const auto& [x, y] : curve.points) xs.insert(x);
  }
  const auto left = xs.empty() ? 1 : *xs.begin(), right = xs.empty() ? 2 : *xs.rbegin();
  const auto end = kSvgWidth - 230;
  const auto place_x = [&](double x) {
    return right > left ? kSide + (end - kSide) * std::log(x / left) / std::log(right / left) : kSide;
  };
  const auto place_y = [&](double y) { return kBottom - (kBottom - kUp) * y / top; };
  auto svg = svg_head(kHeight) + svg_text(12, 24, text.title, " font-size=\"15\"");
  for (int tick = 0; tick <= 5; ++tick) {
    const auto y = top * tick / 5;
    svg += svg_line(kSide, place_y(y), end, place_y(y), "#dddddd") +
           svg_text(kSide - 6, place_y(y) + 4, svg_number(y, top > 5 ? 0 : 1), " text-anchor=\"end\"");
  }
  for (const auto x : xs) svg += svg_text(place_x(x), kBottom + 18, svg_number(x, 0), " text-anchor=\"middle\"");
  svg += svg_text((kSide + end) / 2, kBottom + 40, text.x, " text-anchor=\"middle\"") + svg_text(12, 42, text.y);
  constexpr std::array colours = {"#1f5a9d", "#b5542c", "#3f7f4f", "#7d3c72", "#8a6d1a", "#444444"};
  constexpr std::array dashes = {"", "7 4", "2 3", "10 3 2 3", "4 4", "1 4"};
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const auto* colour = colours[i % colours.size()];
    const auto dash = std::string(" stroke-dasharray=\"") + dashes[i % dashes.size()] + "\"";
    svg += std::string("<polyline fill=\"none\" stroke-width=\"2\" stroke=\"") + colour + "\"" + dash + " points=\"";
    for (const auto& [x, y] : curves[i].points) svg += svg_number(place_x(x)) + "," + svg_number(place_y(y)) + " ";
    svg += "\"/>\n";
    const auto y = kUp + 20 + 22 * static_cast<double>(i);
    svg += std::string("<line stroke-width=\"2\" x1=\"") + svg_number(end + 16) + "\" y1=\"" + svg_number(y - 4) +
           "\" x2=\"" + svg_number(end + 46) + "\" y2=\"" + svg_number(y - 4) + "\" stroke=\"" + colour + "\"" + dash +
           "/>\n" + svg_text(end + 52, y, curves[i].name);
  }
  return svg + "</svg>\n";
}

}  // namespace sealift::trainer
