// SPDX-License-Identifier: Apache-2.0
// Draws curves over two axes.
// See graph_picture.hpp: few enough curves -> points that can be drawn -> axes -> lines -> legend.
// A long curve keeps the lowest and highest point of each column of pixels, so that no spike is lost.
#include "verify/pictures/graph_picture.hpp"

#include "verify/pictures/axis.hpp"
#include "verify/pictures/svg.hpp"
#include "verify/wording/numbers.hpp"
#include "verify/wording/texts.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

namespace sealift::verify {
namespace {

constexpr double kWidth = 680, kLeft = 74, kRight = 14, kTop = 12, kPlotHeight = 220, kBelow = 44, kRow = 17;
constexpr std::size_t kMostCurves = 6, kColumns = 280;

/// A curve with what tells it apart.
struct Line {
  std::string name;
  bool expected = false;
  std::vector<std::pair<double, double>> points;  ///< not finite: a gap
};

struct Drawing {
  std::vector<Line> lines;
  std::size_t not_finite = 0, not_on_log = 0;
};

/// Lowest, median and highest of `curves` at each x that any has.
std::vector<Line> envelope(const std::vector<const Curve*>& curves, Language language) {
  std::map<double, std::vector<double>> at;
  for (const auto* curve : curves) {
    for (const auto& [x, y] : curve->points) {
      if (std::isfinite(x) && std::isfinite(y)) at[x].push_back(y);
    }
  }
  const auto count = std::to_string(curves.size());
  std::vector<Line> lines{{filled(Word::HighestOf, language, {count}), false, {}},
                          {filled(Word::MedianOf, language, {count}), false, {}},
                          {filled(Word::LowestOf, language, {count}), false, {}}};
  for (auto& [x, values] : at) {
    std::sort(values.begin(), values.end());
    lines[0].points.emplace_back(x, values.back());
    lines[1].points.emplace_back(x, values[values.size() / 2]);
    lines[2].points.emplace_back(x, values.front());
  }
  return lines;
}

bool drawable(double value, bool logarithmic) {
  return std::isfinite(value) && (!logarithmic || value > 0);
}

/// Makes points that cannot be drawn into gaps, and counts them.
void count_gaps(Line& line, const Graph& graph, Drawing& drawing) {
  for (auto& [x, y] : line.points) {
    if (!std::isfinite(x) || !std::isfinite(y))
      ++drawing.not_finite;
    else if (!drawable(x, graph.log_x) || !drawable(y, graph.log_y))
      ++drawing.not_on_log;
    else
      continue;
    y = std::nan("");
  }
}

Drawing drawing_of(const Graph& graph, Language language) {
  Drawing drawing;
  std::vector<const Curve*> measured;
  for (const auto& curve : graph.curves) {
    if (!curve.expected) measured.push_back(&curve);
  }
  if (measured.size() > kMostCurves) {
    drawing.lines = envelope(measured, language);
    for (const auto* curve : measured) {
      for (const auto& [x, y] : curve->points) drawing.not_finite += std::isfinite(x) && std::isfinite(y) ? 0 : 1;
    }
  }
  std::size_t expected = 0;
  for (const auto& curve : graph.curves) {
    if (curve.expected ? expected++ < kMostCurves : measured.size() <= kMostCurves) {
      drawing.lines.push_back({in(curve.name, language), curve.expected, curve.points});
    }
  }
  for (auto& line : drawing.lines) count_gaps(line, graph, drawing);
  return drawing;
}

struct Axes {
  Axis x, y;
  double left(double value) const { return kLeft + std::clamp(x.place(value), 0.0, 1.0) * (kWidth - kLeft - kRight); }
  double top(double value) const { return kTop + (1 - std::clamp(y.place(value), 0.0, 1.0)) * kPlotHeight; }
};

Axes axes_of(const Drawing& drawing, const Graph& graph) {
  std::vector<double> x, y;
  for (const auto& line : drawing.lines) {
    for (const auto& point : line.points) {
      if (!std::isfinite(point.second)) continue;
      x.push_back(point.first);
      y.push_back(point.second);
    }
  }
  Axes axes{axis_over(x, graph.log_x), axis_over(y, graph.log_y)};
  // Steps begin where they begin: a linear x axis ends at its values and not at the next tick.
  if (!graph.log_x && !x.empty()) {
    const auto [low, high] = std::minmax_element(x.begin(), x.end());
    if (*high > *low) {
      axes.x.low = *low;
      axes.x.high = *high;
      std::erase_if(axes.x.ticks, [&](double tick) { return tick < axes.x.low || tick > axes.x.high; });
    }
  }
  return axes;
}

std::string grid(const Axes& axes, const Graph& graph, Language language) {
  const double right = kWidth - kRight, bottom = kTop + kPlotHeight;
  std::string svg;
  for (const double tick : axes.y.ticks) {
    const auto y = axes.top(tick);
    svg += "<line class=\"grid\" x1=\"" + px(kLeft) + "\" x2=\"" + px(right) + "\" y1=\"" + px(y) + "\" y2=\"" + px(y) +
           "\"/>" + text_at(kLeft - 6, y + 4, "end", tick_text(tick));
  }
  for (const double tick : axes.x.ticks) {
    const auto x = axes.left(tick);
    svg += "<line class=\"grid\" y1=\"" + px(kTop) + "\" y2=\"" + px(bottom) + "\" x1=\"" + px(x) + "\" x2=\"" + px(x) +
           "\"/>" + text_at(x, bottom + 16, "middle", tick_text(tick));
  }
  svg += "<rect class=\"frame\" x=\"" + px(kLeft) + "\" y=\"" + px(kTop) + "\" width=\"" + px(right - kLeft) +
         "\" height=\"" + px(kPlotHeight) + "\"/>";
  svg += text_at((kLeft + right) / 2, bottom + 36, "middle", shortened(in(graph.x, language), 80));
  const auto middle = px(kTop + kPlotHeight / 2);
  return svg + text_at(14, kTop + kPlotHeight / 2, "middle", shortened(in(graph.y, language), 40),
                       " transform=\"rotate(-90 14 " + middle + ")\"");
}

using Pixels = std::vector<std::pair<double, double>>;

/// The lowest and the highest point of each column where there are more points than can be seen.
Pixels thinned(Pixels pixels) {
  if (pixels.size() <= 2 * kColumns) return pixels;
  Pixels kept;
  const auto per_column = (pixels.size() + kColumns - 1) / kColumns;
  for (std::size_t first = 0; first < pixels.size(); first += per_column) {
    const auto begin = pixels.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = pixels.begin() + static_cast<std::ptrdiff_t>(std::min(first + per_column, pixels.size()));
    auto [low, high] =
        std::minmax_element(begin, end, [](const auto& a, const auto& b) { return a.second < b.second; });
    if (high < low) std::swap(low, high);
    kept.push_back(*low);
    if (low != high) kept.push_back(*high);
  }
  return kept;
}

/// The runs of a line between its gaps.
std::vector<Pixels> runs_of(const Line& line, const Axes& axes) {
  std::vector<Pixels> runs(1);
  for (const auto& [x, y] : line.points) {
    if (std::isfinite(y))
      runs.back().emplace_back(axes.left(x), axes.top(y));
    else if (!runs.back().empty())
      runs.emplace_back();
  }
  if (runs.back().empty()) runs.pop_back();
  for (auto& run : runs) run = thinned(std::move(run));
  return runs;
}

/// A mark of the `style`-th line.
std::string mark_at(double x, double y, std::size_t style) {
  const auto at = "translate(" + px(x) + " " + px(y) + ")";
  constexpr std::array kShapes{"M-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0",
                               "M-3-3h6v6h-6z",
                               "M0-4l4 7h-8z",
                               "M0-4.5l4 4.5l-4 4.5l-4-4.5z",
                               "M-3.5-3.5l7 7M3.5-3.5l-7 7",
                               "M0-4v8M-4 0h8"};
  return "<path class=\"mark s" + std::to_string(style % kShapes.size()) + "\" d=\"" + kShapes[style % kShapes.size()] +
         "\" transform=\"" + at + "\"/>";
}

std::string line_class(const Line& line, std::size_t style) {
  return line.expected ? "expected e" + std::to_string(style % 3) : "curve s" + std::to_string(style % kMostCurves);
}

std::string drawn(const Line& line, std::size_t style, const Axes& axes) {
  std::string svg;
  std::size_t points = 0, seen = 0;
  const auto runs = runs_of(line, axes);
  for (const auto& run : runs) {
    points += run.size();
    svg += "<polyline class=\"" + line_class(line, style) + "\" points=\"";
    for (const auto& [x, y] : run) svg += px(x) + "," + px(y) + " ";
    svg += "\"/>";
  }
  const auto every = std::max<std::size_t>(1, points / 14);
  for (const auto& run : runs) {
    for (const auto& [x, y] : run) {
      // Marks of several lines do not lie on one another; a run of one point has nothing but its mark.
      if (run.size() == 1 || (!line.expected && seen % every == style % every)) svg += mark_at(x, y, style);
      ++seen;
    }
  }
  return svg;
}

std::string legend(const std::vector<Line>& lines, Language language) {
  std::string svg;
  std::size_t expected = 0, measured = 0;
  double y = kTop + kPlotHeight + kBelow + 14;
  for (const auto& line : lines) {
    const auto style = line.expected ? expected++ : measured++;
    const auto middle = px(y - 4);
    svg += "<line class=\"" + line_class(line, style) + "\" x1=\"" + px(kLeft) + "\" x2=\"" + px(kLeft + 34) +
           "\" y1=\"" + middle + "\" y2=\"" + middle + "\"/>";
    if (!line.expected) svg += mark_at(kLeft + 17, y - 4, style);
    const auto name = shortened(line.name, 80);
    svg +=
        text_at(kLeft + 42, y, "start", line.expected ? name + " (" + word(Word::ExpectedCurve, language) + ")" : name);
    y += kRow;
  }
  return svg;
}

std::string notes(const Drawing& drawing, Language language) {
  std::string html;
  if (drawing.not_finite) {
    html += "<p class=\"note\">" + filled(Word::NotFinite, language, {std::to_string(drawing.not_finite)}) + "</p>";
  }
  if (drawing.not_on_log) {
    html += "<p class=\"note\">" + filled(Word::NotOnLog, language, {std::to_string(drawing.not_on_log)}) + "</p>";
  }
  return html;
}

}  // namespace

std::string graph_picture(const Graph& graph, Language language) {
  const auto drawing = drawing_of(graph, language);
  auto html = "<figure><figcaption>" + escaped(shortened(in(graph.title, language), 200)) + "</figcaption>";
  const bool empty = std::none_of(drawing.lines.begin(), drawing.lines.end(), [](const Line& line) {
    return std::any_of(line.points.begin(), line.points.end(), [](const auto& p) { return std::isfinite(p.second); });
  });
  if (empty) {
    return html + "<p class=\"note\">" + word(Word::NoPoint, language) + "</p>" + notes(drawing, language) +
           "</figure>";
  }
  const auto axes = axes_of(drawing, graph);
  const double height = kTop + kPlotHeight + kBelow + kRow * static_cast<double>(drawing.lines.size()) + 4;
  html += "<svg viewBox=\"0 0 " + px(kWidth) + " " + px(height) + "\" role=\"img\" aria-label=\"" +
          escaped(shortened(in(graph.title, language), 200)) + "\">" + grid(axes, graph, language);
  std::size_t expected = 0, measured = 0;
  for (const auto& line : drawing.lines) html += drawn(line, line.expected ? expected++ : measured++, axes);
  return html + legend(drawing.lines, language) + "</svg>" + notes(drawing, language) + "</figure>";
}

}  // namespace sealift::verify
