// SPDX-License-Identifier: Apache-2.0
// Pictures of any numbers: axes that read, no point lost in silence, the outlier seen among a thousand.
#include "tests/verify/verdict/made_verdict.hpp"
#include "tests/verify/wording/parts_of.hpp"
#include "verify/pictures/axis.hpp"
#include "verify/pictures/graph_picture.hpp"
#include "verify/pictures/matrix_picture.hpp"
#include "verify/wording/numbers.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

using namespace sealift::verify;

TEST_CASE("axes have a few round ticks within their ends, for any span of numbers") {
  CHECK(axis_over({0.3, 9.7}, false).ticks == std::vector<double>{0, 2, 4, 6, 8, 10});
  CHECK(axis_over({8, 1e9}, true).ticks.front() == doctest::Approx(100));
  CHECK(axis_over({1, 4}, true).ticks == std::vector<double>{1, 2});
  CHECK(axis_over({5, 5}, false).place(5) == doctest::Approx(0.5));
  const double most = std::numeric_limits<double>::max(), least = std::numeric_limits<double>::denorm_min();
  for (const auto& values : std::vector<std::vector<double>>{
           {}, {0}, {-most, most}, {least}, {0, least}, {1, 1 + 1e-15}, {-3e-5, 7e11}, {1e308}, {1e-12, 2e-12}}) {
    for (const bool logarithmic : {false, true}) {
      if (logarithmic && !values.empty() && values[0] <= 0) continue;
      const auto axis = axis_over(values, logarithmic);
      INFO(axis.low << " " << axis.high);
      CHECK(axis.low < axis.high);
      CHECK(axis.ticks.size() >= 2);
      CHECK(axis.ticks.size() <= 13);
      CHECK(std::is_sorted(axis.ticks.begin(), axis.ticks.end()));
      CHECK(std::isfinite(axis.place(axis.ticks.back())));
    }
  }
  CHECK(tick_text(1048576) == "1.04858 M");
  CHECK(tick_text(20000) == "20 k");
  CHECK(tick_text(2e-5) == "2e-05");
}

TEST_CASE("what a graph cannot draw is counted beside it, and a gap is no line") {
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  Graph graph{"loss", "step", "nats",
              false,  true,   {{"a", {{1, 2}, {2, 3}, {3, nan}, {4, inf}, {5, 0}, {6, 2}, {7, 1}}, false}}};
  const auto html = graph_picture(graph, Language::English);
  CHECK(has(html, "2 points are not drawn: they are infinite"));
  CHECK(has(html, "1 points are not drawn: a logarithmic axis"));
  CHECK(times(html, "<polyline") == 2);
  CHECK_FALSE(has(html, "nan"));
  CHECK_FALSE(has(html, "inf,"));
  graph.curves[0].points = {{1, nan}};
  CHECK(has(graph_picture(graph, Language::English), "There is no point to draw."));
  CHECK(has(graph_picture({}, Language::English), "There is no point to draw."));
}

TEST_CASE("many curves are drawn as their lowest, median and highest, and a long one keeps its spike") {
  Graph graph{"rates", "size", "GB/s", false, false, {}};
  for (int i = 0; i < 1000; ++i) graph.curves.push_back({"rank " + std::to_string(i), {{1, i}, {2, i}}, false});
  graph.curves.push_back({"kind", {{1, 500}, {2, 500}}, true});
  const auto html = graph_picture(graph, Language::English);
  CHECK(times(html, "<polyline") == 4);
  CHECK(has(html, "lowest of 1000 curves"));
  CHECK(has(html, "kind (expected)"));

  Graph spike{"loss", "step", "nats", false, false, {{"a", {}, false}}};
  for (int i = 0; i < 100000; ++i) spike.curves[0].points.emplace_back(i, i == 54321 ? 100 : 1);
  const auto picture = graph_picture(spike, Language::English);
  CHECK(picture.size() < 20000);
  CHECK(has(picture, ",12.0 "));  // the top of the plot
}

TEST_CASE("a large matrix is drawn in blocks that show the outlier, and its extremes are named") {
  const auto matrix = made::pairs(300);
  const auto blocks = in_blocks(matrix);
  CHECK(blocks.rows_per_cell == 10);
  CHECK(blocks.matrix.rows.size() == 30);
  CHECK(blocks.matrix.rows[0] == Phrase("gpu01 … gpu10"));
  CHECK(blocks.matrix.values[0] == 18.2);  // gpu03 → gpu08
  const auto html = matrix_picture(matrix, Language::English);
  CHECK(has(html, "up to 10 × 10 values"));
  CHECK(has(html, "Lowest: gpu03 → gpu08 18.2; gpu08 → gpu03 18.2"));
  CHECK(times(html, "url(#hatch)") == 1);  // of the scale: no block is without a value
  const auto small = matrix_picture(made::pairs(8), Language::English);
  CHECK(times(small, "url(#hatch)") == 9);
  CHECK(times(small, "class=\"cell\"") == 56);
  CHECK(has(matrix_picture({"t", "u", {"a"}, {"b"}, {std::nullopt}}, Language::English), "There is no value to draw."));
}
