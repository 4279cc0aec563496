// SPDX-License-Identifier: Apache-2.0
// What every HTML page of this program stands in: head, style for screen and A4, and small pieces of HTML.
// Around html_page and comparison_page.
// All style is inline and nothing is fetched, so the file is whole wherever it is filed.
#pragma once

#include "verify/wording/words.hpp"

namespace sealift::verify {

/// A whole HTML document. `title` is plain text; `body` is HTML.
std::string framed(const std::string& title, const std::string& body, Language language);

/// A <table class="KIND"> of rows of cells that are HTML already; the first row is its head unless `headless`.
std::string table(const std::vector<std::vector<std::string>>& rows, const std::string& kind, bool headless = false);

/// The outcome with its mark, as a box whose border tells it apart without colour.
std::string outcome_badge(Outcome outcome, Language language);

}  // namespace sealift::verify
