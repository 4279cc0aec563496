// SPDX-License-Identifier: Apache-2.0
// Shows a comparison.
// See comparison_pages.hpp: the same rows make the tables of the HTML page and the lines of the text.
// Rows are plain text until they are put in; only there they are escaped or kept on one line.
#include "verify/pages/comparison_pages.hpp"

#include "verify/pages/frame.hpp"
#include "verify/verdict/json.hpp"
#include "verify/wording/figures.hpp"
#include "verify/wording/numbers.hpp"
#include "verify/wording/texts.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace sealift::verify {
namespace {

constexpr std::size_t kMostLines = 500;
constexpr int kDigits = 9;  // of a value on a curve, since a loss may differ in its last
constexpr std::array kTurns{Turn::Worse, Turn::Better, Turn::Changed};

struct Rows {
  std::string title;
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;
};

std::string turn_text(Turn turn, Language language) {
  if (turn == Turn::Worse) return "▼ " + word(Word::Worse, language);
  return turn == Turn::Better ? "▲ " + word(Word::Better, language) : "• " + word(Word::Changed, language);
}

std::string outcome_text(const std::optional<Outcome>& outcome, Language language) {
  return outcome ? mark(*outcome) + " " + word(*outcome, language) : "–";
}

/// With more digits where there is little, since a difference of one bit is one.
std::string change_text(double share) {
  if (share != 0 && std::fabs(share) < 1e-3) return percent_text(share);
  return (share > 0 ? "+" : "") + percent_text(std::round(share * 1000) / 1000);
}

std::string turn_key(Turn turn) {
  return turn == Turn::Worse ? "worse" : turn == Turn::Better ? "better" : "changed";
}

Rows outcome_rows(const Comparison& comparison, Language language) {
  Rows rows{word(Word::Outcomes, language),
            {"", word(Word::CheckName, language), word(Word::Before, language), word(Word::After, language),
             word(Word::Because, language)},
            {}};
  for (const auto turn : kTurns) {
    for (const auto& change : comparison.outcomes) {
      if (change.turn != turn) continue;
      rows.rows.push_back({turn_text(turn, language), in(change.title, language) + " (" + change.check + ")",
                           outcome_text(change.before, language), outcome_text(change.after, language),
                           shortened(in(change.reason, language), 600)});
    }
  }
  return rows;
}

/// The value of a figure, or that its report has none.
std::string value_in(const std::optional<Figure>& given, Word none, Language language) {
  return given ? value_text(*given, language) : word(none, language);
}

Rows curve_rows(const Comparison& comparison, Language language) {
  Rows rows{word(Word::Curves, language),
            {word(Word::Curve, language), word(Word::FirstDifference, language), word(Word::Before, language),
             word(Word::After, language), word(Word::LargestDifference, language)},
            {}};
  const auto said_of = [](const std::optional<double>& value) { return value ? number_text(*value, kDigits) : "–"; };
  for (const auto& change : comparison.curves) {
    auto apart = change_text(change.largest);
    if (change.before_points != change.after_points) {
      apart += "; " + filled(Word::PointsOf, language,
                             {std::to_string(change.before_points), std::to_string(change.after_points)});
    }
    rows.rows.push_back({change.check + ": " + in(change.graph, language) + ", " + in(change.curve, language),
                         in(change.axis, language) + " " + number_text(change.first.value_or(0)),
                         said_of(change.before), said_of(change.after), apart});
  }
  return rows;
}

Rows figure_rows(const Comparison& comparison, Language language) {
  Rows rows{filled(Word::Figures, language, {percent_text(comparison.threshold)}),
            {"", word(Word::FigureName, language), word(Word::Before, language), word(Word::After, language),
             word(Word::Relative, language)},
            {}};
  for (const auto turn : kTurns) {
    for (const auto& change : comparison.figures) {
      if (change.turn != turn || !(change.moved || change.in_one_only())) continue;
      rows.rows.push_back({turn_text(turn, language), change.check + ": " + in(change.name(), language),
                           value_in(change.before, Word::OnlyAfter, language),
                           value_in(change.after, Word::OnlyBefore, language),
                           std::isnan(change.relative) ? "–" : change_text(change.relative)});
    }
  }
  return rows;
}

Rows expectation_rows(const Comparison& comparison, Language language) {
  Rows rows{word(Word::ExpectationChanged, language),
            {word(Word::FigureName, language), word(Word::Before, language), word(Word::After, language)},
            {}};
  const auto said_of = [&](const Figure& figure) {
    const auto text = expectation_text(figure, language);
    return text.empty() ? word(Word::NoExpectation, language) : text;
  };
  for (const auto& change : comparison.figures) {
    if (!change.expectation_changed) continue;
    rows.rows.push_back(
        {change.check + ": " + in(change.name(), language), said_of(*change.before), said_of(*change.after)});
  }
  return rows;
}

Rows fact_rows(const Comparison& comparison, Language language, bool of_report) {
  Rows rows{word(of_report ? Word::Environment : Word::Facts, language),
            {word(Word::Read, language), word(Word::Before, language), word(Word::After, language)},
            {}};
  for (const auto& change : comparison.facts) {
    if (change.check.empty() != of_report) continue;
    rows.rows.push_back({(of_report ? "" : change.check + ": ") + in(change.name, language),
                         change.before ? in(*change.before, language) : word(Word::OnlyAfter, language),
                         change.after ? in(*change.after, language) : word(Word::OnlyBefore, language)});
  }
  return rows;
}

std::vector<Rows> all_rows(const Comparison& comparison, Language language) {
  return {outcome_rows(comparison, language),    figure_rows(comparison, language),
          curve_rows(comparison, language),      expectation_rows(comparison, language),
          fact_rows(comparison, language, true), fact_rows(comparison, language, false)};
}

std::string headline(const Comparison& comparison, Language language) {
  const auto worse = comparison.worse();
  return worse == 0 ? "✔ " + word(Word::NothingWorse, language)
                    : "✘ " + filled(Word::SomethingWorse, language, {std::to_string(worse)});
}

std::vector<std::string> remarks(const Comparison& comparison, Language language) {
  std::vector<std::string> notes{filled(Word::Noise, language, {percent_text(comparison.threshold)}),
                                 word(Word::NotMatrices, language)};
  if (comparison.different_levels) notes.insert(notes.begin(), word(Word::DifferentLevels, language));
  return notes;
}

std::string html_table(const Rows& rows, Language language) {
  auto html = "<h2>" + escaped(rows.title) + "</h2>\n";
  if (rows.rows.empty()) return html + "<p>" + word(Word::NothingChanged, language) + "</p>\n";
  std::vector<std::vector<std::string>> cells_of_rows{rows.head};
  for (const auto& row : rows.rows) {
    if (cells_of_rows.size() > kMostLines) break;
    cells_of_rows.emplace_back();
    for (const auto& cell : row) cells_of_rows.back().push_back(escaped(shortened(cell, 1000)));
  }
  html += table(cells_of_rows, "changes");
  if (rows.rows.size() <= kMostLines) return html;
  return html + "<p class=\"note\">" +
         filled(Word::MoreRows, language, {std::to_string(rows.rows.size() - kMostLines)}) + "</p>\n";
}

std::string text_table(const Rows& rows, Language language) {
  auto text = "\n== " + one_line(rows.title) + " ==\n";
  if (rows.rows.empty()) return text + "  " + word(Word::NothingChanged, language) + "\n";
  for (std::size_t i = 0; i < std::min(rows.rows.size(), kMostLines); ++i) {
    std::string line;
    for (const auto& cell : rows.rows[i]) line += (line.empty() ? "  " : " | ") + one_line(shortened(cell, 300));
    text += line + "\n";
  }
  if (rows.rows.size() <= kMostLines) return text;
  return text + "  " + filled(Word::MoreRows, language, {std::to_string(rows.rows.size() - kMostLines)}) + "\n";
}

std::string heading_of(const Verdict& verdict) {
  return verdict.site + ", " + name_of(verdict.level) + ", " + verdict.finished;
}

}  // namespace

std::string comparison_html(const Comparison& comparison, const Compared& compared, Language language) {
  const auto title = word(Word::Comparison, language);
  auto body = "<h1>" + title + "</h1>\n<div class=\"verdict " + (comparison.worse() ? "fail" : "pass") + "\"><b>" +
              headline(comparison, language) + "</b></div>\n";
  const auto side = [&](Word which, const Verdict& verdict, const std::string& file) {
    return std::vector<std::string>{word(which, language), outcome_badge(outcome_of(verdict), language),
                                    escaped(heading_of(verdict)), escaped(file)};
  };
  body += table({side(Word::Before, compared.before, compared.before_file),
                 side(Word::After, compared.after, compared.after_file)},
                "pair", true);
  for (const auto& note : remarks(comparison, language)) body += "<p class=\"note\">" + note + "</p>\n";
  for (const auto& rows : all_rows(comparison, language)) body += html_table(rows, language);
  return framed(title, body, language);
}

std::string comparison_text(const Comparison& comparison, const Compared& compared, Language language) {
  const auto side = [&](Word which, const Verdict& verdict, const std::string& file) {
    return "  " + word(which, language) + ": " + word(outcome_of(verdict), language) + ", " +
           one_line(heading_of(verdict)) + " (" + one_line(file) + ")\n";
  };
  auto text = headline(comparison, language) + "\n" + side(Word::Before, compared.before, compared.before_file) +
              side(Word::After, compared.after, compared.after_file);
  for (const auto& note : remarks(comparison, language)) text += "  " + note + "\n";
  for (const auto& rows : all_rows(comparison, language)) text += text_table(rows, language);
  return text;
}

nlohmann::ordered_json comparison_json(const Comparison& comparison) {
  using Ordered = nlohmann::ordered_json;
  const auto outcome = [](const std::optional<Outcome>& o) { return o ? Ordered(name_of(*o)) : Ordered(nullptr); };
  const auto text = [](const std::optional<Phrase>& t) { return t ? Ordered(t->en) : Ordered(nullptr); };
  const auto figure = [](const std::optional<Figure>& f) { return f ? Ordered(to_json(*f)) : Ordered(nullptr); };
  Ordered json{{"worse", comparison.worse()},
               {"threshold", comparison.threshold},
               {"different_levels", comparison.different_levels},
               {"outcomes", Ordered::array()},
               {"figures", Ordered::array()},
               {"curves", Ordered::array()},
               {"facts", Ordered::array()}};
  for (const auto& change : comparison.outcomes) {
    json["outcomes"].push_back({{"check", change.check},
                                {"before", outcome(change.before)},
                                {"after", outcome(change.after)},
                                {"turn", turn_key(change.turn)}});
  }
  for (const auto& change : comparison.figures) {
    json["figures"].push_back(
        {{"check", change.check},
         {"before", figure(change.before)},
         {"after", figure(change.after)},
         {"relative", std::isfinite(change.relative) ? Ordered(change.relative) : Ordered(nullptr)},
         {"moved", change.moved},
         {"expectation_changed", change.expectation_changed},
         {"turn", turn_key(change.turn)}});
  }
  const auto value = [](const std::optional<double>& v) {
    return v && std::isfinite(*v) ? Ordered(*v) : Ordered(nullptr);
  };
  for (const auto& change : comparison.curves) {
    json["curves"].push_back({{"check", change.check},
                              {"graph", change.graph.en},
                              {"curve", change.curve.en},
                              {"axis", change.axis.en},
                              {"first", value(change.first)},
                              {"before", value(change.before)},
                              {"after", value(change.after)},
                              {"largest", value(change.largest)},
                              {"before_points", change.before_points},
                              {"after_points", change.after_points}});
  }
  for (const auto& change : comparison.facts) {
    json["facts"].push_back({{"check", change.check},
                             {"name", change.name.en},
                             {"before", text(change.before)},
                             {"after", text(change.after)}});
  }
  return json;
}

}  // namespace sealift::verify
