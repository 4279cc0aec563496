// SPDX-License-Identifier: Apache-2.0
// The Chrome trace.
// See chrome_trace.hpp. The format: "Trace Event Format" (Google); times are microseconds.
// A viewer draws a row per thread id, in which events must nest; gathers overlap, so they get as many rows as they
// need.
#include "trainer/monitor/chrome_trace.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <numeric>

namespace sealift::trainer {
namespace {

using Json = nlohmann::ordered_json;
using train::Activity;

/// Rows of one kind; more than one where events overlap.
struct Group {
  const char* name;
  bool nested;
  std::vector<Activity> activities;
};

const std::vector<Group>& groups() {
  using enum Activity;
  static const std::vector<Group> all = {
      {"loop", true, {}},
      {"units", true, {Forward, Backward, GatherWait, ReduceWait}},
      {"gathers in flight", false, {Gather}},
      {"reductions in flight", false, {Reduce}},
  };
  return all;
}

/// Far apart, so that rows stay in the order of their groups.
constexpr int kRowsOfAGroup = 1000;

Json name_of(const char* what, std::int64_t rank, int row, const std::string& name) {
  return {{"name", what}, {"ph", "M"}, {"pid", rank}, {"tid", row}, {"args", {{"name", name}}}};
}

}  // namespace

std::vector<int> rows_of(const std::vector<std::pair<double, double>>& spans, bool nested) {
  std::vector<std::size_t> order(spans.size());
  std::iota(order.begin(), order.end(), 0);
  // What surrounds comes first.
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) {
    return std::pair(spans[a].first, -spans[a].second) < std::pair(spans[b].first, -spans[b].second);
  });
  std::vector<std::vector<double>> open;  // by row: the ends of what surrounds, innermost last
  std::vector<int> rows(spans.size());
  for (const auto i : order) {
    const auto& [begin, end] = spans[i];
    std::size_t row = 0;
    for (;; ++row) {
      if (row == open.size()) open.emplace_back();
      auto& ends = open[row];
      while (!ends.empty() && ends.back() <= begin) ends.pop_back();
      if (ends.empty() || (nested && end <= ends.back())) break;
    }
    open[row].push_back(end);
    rows[i] = static_cast<int>(row);
  }
  return rows;
}

std::string trace_events(std::int64_t rank, const std::string& host, const std::vector<LoopSpan>& loop,
                         const std::vector<train::TimedActivity>& activities, double shift) {
  std::string text = name_of("process_name", rank, 0, "rank " + std::to_string(rank) + " (" + host + ")").dump();
  text +=
      ",\n" + Json{{"name", "process_sort_index"}, {"ph", "M"}, {"pid", rank}, {"args", {{"sort_index", rank}}}}.dump();
  for (std::size_t group = 0; group < groups().size(); ++group) {
    const auto& [name, nested, kinds] = groups()[group];
    std::vector<std::pair<std::string, std::pair<double, double>>> events;
    for (const auto& each : activities) {
      if (std::find(kinds.begin(), kinds.end(), each.activity) == kinds.end()) continue;
      events.push_back({std::string(to_string(each.activity)) + " " + each.unit, {each.begin, each.end}});
    }
    if (group == 0) {
      for (const auto& each : loop) events.push_back({each.name, {each.begin, each.end}});
    }
    std::vector<std::pair<double, double>> spans;
    for (const auto& event : events) spans.push_back(event.second);
    const auto rows = rows_of(spans, nested);
    const auto first = static_cast<int>(group) * kRowsOfAGroup;
    for (int row = 0; !rows.empty() && row <= *std::max_element(rows.begin(), rows.end()); ++row) {
      text +=
          ",\n" + name_of("thread_name", rank, first + row, name + (row ? " " + std::to_string(row + 1) : "")).dump();
    }
    for (std::size_t i = 0; i < events.size(); ++i) {
      const auto [begin, end] = spans[i];
      text += ",\n" + Json{{"name", events[i].first},
                           {"ph", "X"},
                           {"pid", rank},
                           {"tid", first + rows[i]},
                           {"ts", (begin + shift) * 1e6},
                           {"dur", (end - begin) * 1e6}}
                          .dump();
    }
  }
  return text;
}

std::string trace_file(const std::vector<std::string>& events_of_ranks) {
  std::string text = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n";
  for (const auto& events : events_of_ranks) text += (&events == &events_of_ranks.front() ? "" : ",\n") + events;
  return text + "\n]}\n";
}

}  // namespace sealift::trainer
