// SPDX-License-Identifier: Apache-2.0
// A trace as a viewer reads it.
#include "trainer/monitor/chrome_trace.hpp"

#include <nlohmann/json.hpp>

#include <map>
#include <random>

#include <doctest/doctest.h>

using namespace sealift;
using namespace sealift::trainer;
using enum train::Activity;

namespace {

using Span = std::pair<double, double>;

/// Every event lies within or beside every other of its row.
void check_rows(const std::vector<Span>& spans, const std::vector<int>& rows, bool nested) {
  REQUIRE(rows.size() == spans.size());
  for (std::size_t a = 0; a < spans.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      if (rows[a] != rows[b]) continue;
      const bool beside = spans[a].second <= spans[b].first || spans[b].second <= spans[a].first;
      const bool within = (spans[a].first <= spans[b].first && spans[b].second <= spans[a].second) ||
                          (spans[b].first <= spans[a].first && spans[a].second <= spans[b].second);
      CHECK((beside || (nested && within)));
    }
  }
}

}  // namespace

TEST_CASE("events that overlap get rows of their own, as few as will do") {
  CHECK(rows_of({{0, 10}, {1, 4}, {5, 9}, {5, 9}}, true) == std::vector{0, 0, 0, 0});
  CHECK(rows_of({{0, 10}, {1, 4}, {5, 9}}, false) == std::vector{0, 1, 1});
  CHECK(rows_of({{0, 6}, {4, 10}, {10, 12}}, true) == std::vector{0, 1, 0});
  CHECK(rows_of({{1, 4}, {0, 10}}, true) == std::vector{0, 0});
  CHECK(rows_of({}, true).empty());
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    std::vector<Span> spans;
    for (int i = 0; i < 30; ++i) {
      const double begin = static_cast<double>(random() % 40);
      spans.emplace_back(begin, begin + static_cast<double>(1 + random() % 12));
    }
    check_rows(spans, rows_of(spans, true), true);
    check_rows(spans, rows_of(spans, false), false);
  }
}

TEST_CASE("a trace has a process for each rank, named rows, and the activities at their times in microseconds") {
  std::vector<std::string> ranks;
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    ranks.push_back(trace_events(rank, "host \"a\"", {{"step 7", 0, 4}},
                                 {{Forward, "root", 0.5, 1.5},
                                  {Gather, "layer0", 0.5, 1},
                                  {Gather, "layer1", 0.75, 1.25},
                                  {GatherWait, "layer0", 0.75, 1},
                                  {Backward, "root", 2, 3},
                                  {Reduce, "root", 2.5, 3.5},
                                  {ReduceWait, "root", 3, 3.5}},
                                 /*shift=*/static_cast<double>(rank)));
  }
  const auto trace = nlohmann::json::parse(trace_file(ranks));
  std::map<std::string, std::map<std::int64_t, nlohmann::json>> found;  // by name and rank
  std::map<std::pair<std::int64_t, int>, std::vector<Span>> by_row;
  std::map<std::pair<std::int64_t, int>, std::string> names;
  for (const auto& event : trace.at("traceEvents")) {
    const auto rank = event.at("pid").get<std::int64_t>();
    if (event.at("ph") == "M") {
      if (event.at("name") == "process_name")
        CHECK(event["args"]["name"] == "rank " + std::to_string(rank) + " (host \"a\")");
      if (event.at("name") == "thread_name") names[{rank, event.at("tid")}] = event["args"]["name"];
      continue;
    }
    REQUIRE(event.at("ph") == "X");
    found[event.at("name")][rank] = event;
    by_row[{rank, event.at("tid")}].emplace_back(event.at("ts"),
                                                 event.at("ts").get<double>() + event.at("dur").get<double>());
  }
  CHECK(found.size() == 8);
  CHECK(found["forward root"][0]["ts"] == 0.5e6);
  CHECK(found["forward root"][0]["dur"] == 1e6);
  CHECK(found["forward root"][1]["ts"] == 1.5e6);
  CHECK(found["step 7"][1]["dur"] == 4e6);
  // Waits are drawn in what waits; collectives in flight have rows of their own.
  const auto row_of = [&](const char* name) { return found[name][0]["tid"].get<int>(); };
  CHECK(row_of("gather wait layer0") == row_of("forward root"));
  CHECK(row_of("gather layer0") != row_of("forward root"));
  CHECK(row_of("gather layer0") != row_of("gather layer1"));
  CHECK(names.at({0, row_of("gather layer1")}) == "gathers in flight 2");
  for (const auto& [row, spans] : by_row) {
    CHECK(names.contains(row));
    check_rows(spans, std::vector<int>(spans.size()), true);
  }
}
