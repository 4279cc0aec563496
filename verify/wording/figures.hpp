// SPDX-License-Identifier: Apache-2.0
// Figures beside their expectation, as words: for the HTML page, the text page and the comparison.
// Between a check's figures and the pages.
// Judged here only for display: a check decides its own outcome.
#pragma once

#include "verify/wording/words.hpp"

namespace sealift::verify {

enum class Standing { Within, Outside, NothingExpected };
/// NaN and infinity are outside of any expectation.
Standing standing_of(const Figure& figure);

/// "712.4 GB/s".
std::string value_text(const Figure& figure, Language language);
/// "at least 700"; "" when nothing is expected.
std::string expectation_text(const Figure& figure, Language language);
/// "✔ as expected", "✘ outside", "– nothing expected".
std::string place_text(Standing place, Language language);

/// The figures that a page shows: all in their order, or, of more than `most`, those outside first and `most` in all.
struct ShownFigures {
  std::vector<Figure> figures;
  std::size_t left_out = 0, left_out_outside = 0;
};
ShownFigures shown_figures(const std::vector<Figure>& figures, std::size_t most);

}  // namespace sealift::verify
