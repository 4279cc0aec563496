// SPDX-License-Identifier: Apache-2.0
// What checks call their figures, curves and culprits, in the language of a page: report.json has each name once, in
// English, so that two reports can be compared.
// Between a check and the pages. A translator reads one table, phrases.cpp.
// Patterns and not keys, since names hold what a machine is called: "rank 3 on gpu07 (cuda:3)".
#pragma once

#include "verify/wording/words.hpp"

namespace sealift::verify {

/// `text` in `language`, where the table knows it; else as it is.
std::string phrase(const std::string& text, Language language);

/// The reason of `check`; ranks that a Chinese sentence names in English are named in Chinese.
std::string reason_in(const Check& check, Language language);

/// `check` with the names of its figures, graphs, matrices and facts in `language`.
Check in_words_of(const Check& check, Language language);

}  // namespace sealift::verify
