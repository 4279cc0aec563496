// SPDX-License-Identifier: Apache-2.0
// The pictures.
// See drawing.hpp. SVG 1.1; the trace is monitor/chrome_trace.hpp's.
// Colours differ in lightness too, and each box carries its name as a tooltip, so that no meaning hangs on a hue alone.
#include "trainer/simulate/drawing.hpp"

#include "trainer/monitor/chrome_trace.hpp"
#include "trainer/simulate/svg.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

namespace sealift::trainer {
namespace {

constexpr double kLeft = 130, kRight = 40;

/// Seconds as people say them: "1.25 s", "38.2 ms", "410 us".
std::string seconds_text(double seconds) {
  if (seconds >= 1) return svg_number(seconds, 2) + " s";
  if (seconds >= 1e-3) return svg_number(seconds * 1e3, 1) + " ms";
  return svg_number(seconds * 1e6, 0) + " us";
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
  auto text = "<rect x=\"" + svg_number(x, 2) + "\" y=\"" + svg_number(y) + "\" width=\"" + svg_number(width, 2) +
              "\" height=\"" + svg_number(kBox) + "\" fill=\"" + colour_of(event.what) + "\"" +
              (event.critical && width > 2 ? " stroke=\"#111111\" stroke-width=\"1.5\"" : "") + "><title>" +
              svg_escaped(label_of(shape, event)) + ", " + seconds_text(event.end - event.begin) +
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
    text +=
        (text.empty() ? "" : ", ") + std::string(to_string(what)) + " " + svg_number(100 * part / seconds, 0) + " %";
  }
  return text;
}

}  // namespace

std::string timeline_svg(const StepShape& shape, const Rates& rates, const std::string& title) {
  const auto time = simulate(shape, rates);
  const auto events = simulate_events(shape, rates);
  const auto scale = (kSvgWidth - kLeft - kRight) / std::max(time.seconds, 1e-12);
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

}  // namespace sealift::trainer
