// SPDX-License-Identifier: Apache-2.0
// Draws a heat map.
// See matrix_picture.hpp: blocks -> cells -> scale -> the extremes by name.
// What was not measured is hatched: an empty cell would look like the lowest value.
#include "verify/pictures/matrix_picture.hpp"

#include "verify/pictures/svg.hpp"
#include "verify/verdict/outliers.hpp"
#include "verify/wording/numbers.hpp"
#include "verify/wording/texts.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <tuple>

namespace sealift::verify {
namespace {

constexpr std::size_t kMostWritten = 14;

std::vector<double> finite_values(const Matrix& matrix) {
  std::vector<double> values;
  for (const auto& value : matrix.values) {
    if (value && std::isfinite(*value)) values.push_back(*value);
  }
  return values;
}

std::vector<Phrase> block_names(const std::vector<Phrase>& names, std::size_t per_block) {
  std::vector<Phrase> blocks;
  for (std::size_t i = 0; i < names.size(); i += per_block) {
    const auto& [first, last] = std::tie(names[i], names[std::min(i + per_block, names.size()) - 1]);
    blocks.push_back(&first == &last ? first : Phrase{first.en + " … " + last.en, first.zh + " … " + last.zh});
  }
  return blocks;
}

/// 0 light, 1 dark: one hue whose lightness falls evenly.
std::string fill_of(double share) {
  const auto mix = [&](double light, double dark) {
    return static_cast<int>(std::lround(light + share * (dark - light)));
  };
  char text[16];
  std::snprintf(text, sizeof text, "#%02x%02x%02x", mix(240, 8), mix(246, 48), mix(252, 107));
  return text;
}

struct Range {
  double low, high;
  double share(double value) const {
    // Halves, since a difference of doubles may overflow.
    return high > low ? std::clamp((value / 2 - low / 2) / (high / 2 - low / 2), 0.0, 1.0) : 0.5;
  }
};

struct Layout {
  double left = 150, top = 96, cell = 20;
};

std::string box(double x, double y, double width, double height, const std::string& fill) {
  return "<rect x=\"" + px(x) + "\" y=\"" + px(y) + "\" width=\"" + px(width) + "\" height=\"" + px(height) +
         "\" fill=\"" + fill + "\" stroke=\"#fff\" stroke-width=\"0.5\"/>";
}

std::string cells(const Matrix& matrix, const Range& range, const Layout& layout, bool written) {
  std::string svg;
  for (std::size_t i = 0; i < matrix.values.size(); ++i) {
    const double x = layout.left + layout.cell * static_cast<double>(i % matrix.columns.size());
    const double y = layout.top + layout.cell * static_cast<double>(i / matrix.columns.size());
    const auto value = matrix.values[i];
    const bool measured = value && std::isfinite(*value);
    const double share = measured ? range.share(*value) : 0;
    svg += box(x, y, layout.cell, layout.cell, measured ? fill_of(share) : "url(#hatch)");
    if (!written || !measured) continue;
    svg += text_at(x + layout.cell / 2, y + layout.cell / 2 + 4, "middle", number_text(*value),
                   share > 0.5 ? " class=\"cell\" fill=\"#fff\"" : " class=\"cell\"");
  }
  return svg;
}

std::string names(const Matrix& matrix, const Layout& layout, Language language) {
  std::string svg;
  for (std::size_t i = 0; i < matrix.rows.size(); ++i) {
    const double y = layout.top + layout.cell * (static_cast<double>(i) + 0.5) + 4;
    svg += text_at(layout.left - 6, y, "end", shortened(in(matrix.rows[i], language), 22));
  }
  for (std::size_t i = 0; i < matrix.columns.size(); ++i) {
    const double x = layout.left + layout.cell * (static_cast<double>(i) + 0.5) + 4, y = layout.top - 6;
    svg += text_at(x, y, "start", shortened(in(matrix.columns[i], language), 20),
                   " transform=\"rotate(-50 " + px(x) + " " + px(y) + ")\"");
  }
  return svg;
}

std::string scale(const Range& range, const Matrix& matrix, double top, Language language) {
  constexpr int kSteps = 24;
  constexpr double kLeft = 150, kWidth = 240, kHeight = 12;
  auto svg = text_at(kLeft - 6, top + 10, "end", word(Word::Scale, language));
  for (int i = 0; i < kSteps; ++i) {
    svg += box(kLeft + i * kWidth / kSteps, top, kWidth / kSteps, kHeight, fill_of((i + 0.5) / kSteps));
  }
  const auto unit = matrix.unit.en.empty() ? "" : " " + shortened(in(matrix.unit, language), 30);
  svg += text_at(kLeft, top + 26, "start", number_text(range.low) + unit);
  svg += text_at(kLeft + kWidth, top + 26, "end", number_text(range.high) + unit);
  svg += box(kLeft + kWidth + 40, top, 20, kHeight, "url(#hatch)");
  return svg + text_at(kLeft + kWidth + 66, top + 10, "start", word(Word::NotMeasured, language));
}

/// The three lowest and three highest values, by name.
std::string extremes(const Matrix& matrix, Language language) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < matrix.values.size(); ++i) {
    if (matrix.values[i] && std::isfinite(*matrix.values[i])) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return *matrix.values[a] < *matrix.values[b]; });
  const auto said = [&](std::size_t i) {
    return shortened(in(matrix.rows[i / matrix.columns.size()], language), 60) + " → " +
           shortened(in(matrix.columns[i % matrix.columns.size()], language), 60) + " " +
           number_text(*matrix.values[i]);
  };
  std::string low, high;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, order.size()); ++i) {
    low += (i ? "; " : "") + said(order[i]);
    high += (i ? "; " : "") + said(order[order.size() - 1 - i]);
  }
  return "<p class=\"note\">" + escaped(filled(Word::Extremes, language, {low, high})) + "</p>";
}

}  // namespace

Blocks in_blocks(const Matrix& matrix) {
  const auto per_cell = [](std::size_t count) {
    return std::max<std::size_t>(1, (count + kMostCells - 1) / kMostCells);
  };
  Blocks blocks{matrix, per_cell(matrix.rows.size()), per_cell(matrix.columns.size())};
  if (blocks.rows_per_cell == 1 && blocks.columns_per_cell == 1) return blocks;
  blocks.matrix.rows = block_names(matrix.rows, blocks.rows_per_cell);
  blocks.matrix.columns = block_names(matrix.columns, blocks.columns_per_cell);
  const auto width = blocks.matrix.columns.size();
  blocks.matrix.values.assign(blocks.matrix.rows.size() * width, std::nullopt);
  const auto median = typical_of(finite_values(matrix));
  for (std::size_t i = 0; i < matrix.values.size(); ++i) {
    const auto value = matrix.values[i];
    if (!value || !std::isfinite(*value)) continue;
    const auto row = i / matrix.columns.size() / blocks.rows_per_cell;
    auto& shown = blocks.matrix.values[row * width + i % matrix.columns.size() / blocks.columns_per_cell];
    if (!shown || std::fabs(*value - median) > std::fabs(*shown - median)) shown = value;
  }
  return blocks;
}

std::string matrix_picture(const Matrix& matrix, Language language) {
  auto html = "<figure><figcaption>" + escaped(shortened(in(matrix.title, language), 200)) + "</figcaption>";
  const auto finite = finite_values(matrix);
  if (finite.empty() || matrix.values.size() != matrix.rows.size() * matrix.columns.size()) {
    return html + "<p class=\"note\">" + word(Word::Empty, language) + "</p></figure>";
  }
  const auto blocks = in_blocks(matrix);
  const auto& shown = blocks.matrix;
  const bool written = std::max(shown.rows.size(), shown.columns.size()) <= kMostWritten;
  Layout layout;
  layout.cell = written ? 36 : 15;
  // Column names stand aslant: as high as the longest of them is long.
  std::size_t longest = 0;
  for (const auto& name : shown.columns) {
    longest = std::max(longest, std::min<std::size_t>(in(name, language).size(), 20));
  }
  layout.top = 20 + 5 * static_cast<double>(longest);
  const auto [low, high] = std::minmax_element(finite.begin(), finite.end());
  const Range range{*low, *high};
  const double bottom = layout.top + layout.cell * static_cast<double>(shown.rows.size());
  html += "<svg viewBox=\"0 0 680 " + px(bottom + 46) + "\" role=\"img\" aria-label=\"" +
          escaped(shortened(in(matrix.title, language), 200)) + "\">";
  html += cells(shown, range, layout, written) + names(shown, layout, language) +
          scale(range, shown, bottom + 14, language);
  html += "</svg>";
  if (blocks.rows_per_cell > 1 || blocks.columns_per_cell > 1) {
    html += "<p class=\"note\">" +
            filled(Word::Blocks, language,
                   {std::to_string(blocks.rows_per_cell), std::to_string(blocks.columns_per_cell)}) +
            "</p>";
  }
  if (!written) html += extremes(matrix, language);
  return html + "</figure>";
}

}  // namespace sealift::verify
