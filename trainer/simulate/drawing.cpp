// SPDX-License-Identifier: Apache-2.0
// The pictures.
// See drawing.hpp. SVG 1.1; the trace is monitor/chrome_trace.hpp's.
// Colours differ in lightness too, and each box carries its name as a tooltip, so that no meaning hangs on a hue alone.
#include "trainer/simulate/drawing.hpp"

#include "sealift/bundle/core/html.hpp"
#include "trainer/monitor/chrome_trace.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>
#include <set>

namespace sealift::trainer {
namespace {

constexpr double kWidth = 960, kLeft = 130, kRight = 40;

std::string number(double value, int digits = 1) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

/// Seconds as people say them: "1.25 s", "38.2 ms", "410 us".
std::string seconds_text(double seconds) {
  if (seconds >= 1) return number(seconds, 2) + " s";
  if (seconds >= 1e-3) return number(seconds * 1e3, 1) + " ms";
  return number(seconds * 1e6, 0) + " us";
}

/// Text within SVG: names come from models.
std::string escaped(const std::string& text) {
  return bundle::html_escaped(text);
}

std::string svg_head(double height) {
  const auto size = number(kWidth, 0) + " " + number(height, 0);
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + size +
         "\" font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";
}

std::string svg_text(double x, double y, const std::string& text, const std::string& more = "") {
  return "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\"" + more + ">" + escaped(text) + "</text>\n";
}

std::string svg_line(double x1, double y1, double x2, double y2, const char* stroke) {
  return "<line x1=\"" + number(x1) + "\" y1=\"" + number(y1) + "\" x2=\"" + number(x2) + "\" y2=\"" + number(y2) +
         "\" stroke=\"" + stroke + "\"/>\n";
}

const char* colour_of(StepActivity what) {
  switch (what) {
    case StepActivity::Forward:
      return "#4f8fd6";
    case StepActivity::Backward:
      return "#1f5a9d";
    case StepActivity::Gather:
      return "#e0a13a";
    case StepActivity::Reduce:
      return "#b5542c";
    case StepActivity::SumOverCopies:
      return "#7d3c72";
    case StepActivity::Optimizer:
      return "#3f7f4f";
    case StepActivity::GatherWait:
    case StepActivity::ReduceWait:
      return "#e4e4e4";
    default:
      return "#8a8a8a";
  }
}

std::string label_of(const StepShape& shape, const StepEvent& event) {
  const auto name = name_of(shape, event);
  return std::string(to_string(event.what)) + (name.empty() ? "" : " " + name);
}

/// Rows of the picture, from the top.
constexpr std::array kStreams = {Stream::Compute, Stream::Gather, Stream::Reduce, Stream::Copies, Stream::Bus};
constexpr double kRow = 30, kBox = 22, kTop = 62;
/// Boxes that would end closer to the one before are left out, so that thousands of micro-batches make a small picture.
constexpr double kThin = 0.3;

/// One event as a box with its name as a tooltip, and inside if it is wide enough.
std::string box(const StepShape& shape, const StepEvent& event, double y, double scale) {
  const auto x = kLeft + event.begin * scale, width = std::max(0.4, (event.end - event.begin) * scale);
  const auto name = name_of(shape, event);
  auto text = "<rect x=\"" + number(x, 2) + "\" y=\"" + number(y) + "\" width=\"" + number(width, 2) + "\" height=\"" +
              number(kBox) + "\" fill=\"" + colour_of(event.what) + "\"" +
              (event.critical && width > 2 ? " stroke=\"#111111\" stroke-width=\"1.5\"" : "") + "><title>" +
              escaped(label_of(shape, event)) + ", " + seconds_text(event.end - event.begin) +
              (event.critical ? ", critical" : "") + "</title></rect>\n";
  const bool waits = event.what == StepActivity::GatherWait || event.what == StepActivity::ReduceWait;
  if (!waits && !name.empty() && width > 7.0 * static_cast<double>(name.size())) {
    text += svg_text(x + 3, y + 15, name, " fill=\"#ffffff\" font-size=\"11\"");
  }
  return text;
}

std::string ruler(double seconds, double y, double scale) {
  std::string text;
  for (int tick = 0; tick <= 5; ++tick) {
    const auto at = seconds * tick / 5;
    text += svg_line(kLeft + at * scale, kTop - 6, kLeft + at * scale, y, "#dddddd");
    text += svg_text(kLeft + at * scale, y + 14, seconds_text(at), " text-anchor=\"middle\" fill=\"#555555\"");
  }
  return text;
}

std::string parts_text(const StepTime& time) {
  std::string text = "step " + seconds_text(time.seconds) + ":";
  for (const auto& [name, part] : {std::pair{"compute", time.compute},
                                   {"waiting for gathers", time.exposed_gather},
                                   {"for reductions", time.exposed_reduce},
                                   {"for the bus", time.offload},
                                   {"optimizer", time.optimizer}}) {
    if (part > 0) text += std::string(text.ends_with(':') ? " " : ", ") + name + " " + seconds_text(part);
  }
  return text;
}

/// "backward 62 %, reduce 24 %": of the chain that determines the end.
std::string chain_text(const std::vector<StepEvent>& events, double seconds) {
  std::string text;
  for (const auto& [what, part] : critical_parts(events)) {
    if (part < 0.005 * seconds) break;  // the longest come first
    text += (text.empty() ? "" : ", ") + std::string(to_string(what)) + " " + number(100 * part / seconds, 0) + " %";
  }
  return text;
}

}  // namespace

std::string timeline_svg(const StepShape& shape, const Rates& rates, const std::string& title) {
  const auto time = simulate(shape, rates);
  const auto events = simulate_events(shape, rates);
  const auto scale = (kWidth - kLeft - kRight) / std::max(time.seconds, 1e-12);
  std::string rows;
  auto y = kTop;
  for (const auto stream : kStreams) {
    // Transfers of one stream may be in flight together.
    std::vector<std::pair<double, double>> spans;
    std::vector<const StepEvent*> of_stream;
    for (const auto& event : events) {
      if (event.stream != stream || event.end <= event.begin) continue;
      spans.emplace_back(event.begin, event.end);
      of_stream.push_back(&event);
    }
    if (spans.empty()) continue;
    const auto row = rows_of(spans, false);
    rows += svg_text(kLeft - 8, y + 15, to_string(stream), " text-anchor=\"end\"");
    const auto last = *std::max_element(row.begin(), row.end());
    std::vector<double> drawn(static_cast<std::size_t>(last) + 1, -1);
    for (std::size_t i = 0; i < spans.size(); ++i) {
      auto& until = drawn[static_cast<std::size_t>(row[i])];
      const auto end = spans[i].second * scale;
      if (end < until + kThin) continue;
      until = end;
      rows += box(shape, *of_stream[i], y + row[i] * kRow, scale);
    }
    y += (last + 1) * kRow;
  }
  const auto height = y + 46;
  return svg_head(height) +
         svg_text(12, 22, title.empty() ? "One optimizer step, simulated" : title, " font-size=\"15\"") +
         svg_text(12, 42, parts_text(time), " fill=\"#333333\"") + ruler(time.seconds, y, scale) + rows +
         svg_text(12, height - 8,
                  "Framed: the chain that determines the end (" + chain_text(events, time.seconds) +
                      "). Grey: the rank waits.",
                  " fill=\"#555555\" font-size=\"11\"") +
         "</svg>\n";
}

std::string timeline_trace(const StepShape& shape, const Rates& rates) {
  std::vector<LoopSpan> loop{{"step", 0, simulate(shape, rates).seconds}};
  std::vector<train::TimedActivity> activities;
  for (const auto& event : simulate_events(shape, rates)) {
    const auto activity = [&]() -> std::optional<train::Activity> {
      switch (event.what) {
        case StepActivity::Forward:
          return train::Activity::Forward;
        case StepActivity::Backward:
          return train::Activity::Backward;
        case StepActivity::Gather:
          return train::Activity::Gather;
        case StepActivity::GatherWait:
          return train::Activity::GatherWait;
        case StepActivity::Reduce:
        case StepActivity::SumOverCopies:
          return train::Activity::Reduce;
        case StepActivity::ReduceWait:
          return train::Activity::ReduceWait;
        default:
          return std::nullopt;
      }
    }();
    if (activity) {
      activities.push_back({*activity, name_of(shape, event), event.begin, event.end});
    } else {
      loop.push_back({label_of(shape, event), event.begin, event.end});
    }
  }
  return trace_file({trace_events(0, "simulated", loop, activities, 0)});
}

std::string chart_svg(const ChartText& text, const std::vector<Curve>& curves, double top) {
  constexpr double kHeight = 420, kBottom = 360, kUp = 50, kSide = 70;
  std::set<double> xs;
  for (const auto& curve : curves) {
    for (const auto& [x, y] : curve.points) xs.insert(x);
  }
  const auto left = xs.empty() ? 1 : *xs.begin(), right = xs.empty() ? 2 : *xs.rbegin();
  const auto end = kWidth - 230;
  const auto place_x = [&](double x) {
    return right > left ? kSide + (end - kSide) * std::log(x / left) / std::log(right / left) : kSide;
  };
  const auto place_y = [&](double y) { return kBottom - (kBottom - kUp) * y / top; };
  auto svg = svg_head(kHeight) + svg_text(12, 24, text.title, " font-size=\"15\"");
  for (int tick = 0; tick <= 5; ++tick) {
    const auto y = top * tick / 5;
    svg += svg_line(kSide, place_y(y), end, place_y(y), "#dddddd") +
           svg_text(kSide - 6, place_y(y) + 4, number(y, top > 5 ? 0 : 1), " text-anchor=\"end\"");
  }
  for (const auto x : xs) svg += svg_text(place_x(x), kBottom + 18, number(x, 0), " text-anchor=\"middle\"");
  svg += svg_text((kSide + end) / 2, kBottom + 40, text.x, " text-anchor=\"middle\"") + svg_text(12, 42, text.y);
  constexpr std::array colours = {"#1f5a9d", "#b5542c", "#3f7f4f", "#7d3c72", "#8a6d1a", "#444444"};
  constexpr std::array dashes = {"", "7 4", "2 3", "10 3 2 3", "4 4", "1 4"};
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const auto* colour = colours[i % colours.size()];
    const auto dash = std::string(" stroke-dasharray=\"") + dashes[i % dashes.size()] + "\"";
    svg += std::string("<polyline fill=\"none\" stroke-width=\"2\" stroke=\"") + colour + "\"" + dash + " points=\"";
    for (const auto& [x, y] : curves[i].points) svg += number(place_x(x)) + "," + number(place_y(y)) + " ";
    svg += "\"/>\n";
    const auto y = kUp + 20 + 22 * static_cast<double>(i);
    svg += std::string("<line stroke-width=\"2\" x1=\"") + number(end + 16) + "\" y1=\"" + number(y - 4) + "\" x2=\"" +
           number(end + 46) + "\" y2=\"" + number(y - 4) + "\" stroke=\"" + colour + "\"" + dash + "/>\n" +
           svg_text(end + 52, y, curves[i].name);
  }
  return svg + "</svg>\n";
}

}  // namespace sealift::trainer
