// SPDX-License-Identifier: Apache-2.0
// Says figures and chooses which of very many are shown.
// See figures.hpp.
// Those outside of what is expected come first, since a thousand ranks give a thousand rows.
#include "verify/wording/figures.hpp"

#include "verify/wording/numbers.hpp"
#include "verify/wording/texts.hpp"

#include <cmath>

namespace sealift::verify {

Standing standing_of(const Figure& figure) {
  if (!figure.at_least && !figure.at_most) return Standing::NothingExpected;
  const bool high_enough = !figure.at_least || figure.value >= *figure.at_least;
  const bool low_enough = !figure.at_most || figure.value <= *figure.at_most;
  return high_enough && low_enough ? Standing::Within : Standing::Outside;
}

std::string value_text(const Figure& figure, Language language) {
  const auto& unit = in(figure.unit, language);
  return number_text(figure.value) + (unit.empty() ? "" : " " + shortened(unit, 40));
}

std::string expectation_text(const Figure& figure, Language language) {
  if (figure.at_least && figure.at_most) {
    return filled(Word::Between, language, {number_text(*figure.at_least), number_text(*figure.at_most)});
  }
  if (figure.at_least) return filled(Word::AtLeast, language, {number_text(*figure.at_least)});
  if (figure.at_most) return filled(Word::AtMost, language, {number_text(*figure.at_most)});
  return {};
}

std::string place_text(Standing place, Language language) {
  if (place == Standing::Within) return "✔ " + word(Word::Within, language);
  if (place == Standing::Outside) return "✘ " + word(Word::Outside, language);
  return "– " + word(Word::NoExpectation, language);
}

ShownFigures shown_figures(const std::vector<Figure>& figures, std::size_t most) {
  ShownFigures shown;
  if (figures.size() <= most) {
    shown.figures = figures;
    return shown;
  }
  for (const bool outside : {true, false}) {
    for (const auto& figure : figures) {
      if ((standing_of(figure) == Standing::Outside) != outside) continue;
      if (shown.figures.size() < most) {
        shown.figures.push_back(figure);
        continue;
      }
      ++shown.left_out;
      shown.left_out_outside += outside ? 1 : 0;
    }
  }
  return shown;
}

}  // namespace sealift::verify
