// SPDX-License-Identifier: Apache-2.0
// Which known word a mistyped one was meant to be, for messages: keys of a job file, names of modules, verbs, options.
// A leaf that belongs to neither half and is not installed: programs of both name the word. The distance of Damerau and
// Levenshtein, as a table: words are short.
#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace sealift {

/// How many letters must be inserted, removed, replaced or swapped with their neighbour to make one the other.
inline std::size_t letters_apart(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> table(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i)
    for (std::size_t j = 0; j <= b.size(); ++j) {
      std::size_t& least = table[i][j] = i == 0 ? j : j == 0 ? i : table[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
      if (i == 0 || j == 0) continue;
      least = std::min({least, table[i - 1][j] + 1, table[i][j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        least = std::min(least, table[i - 2][j - 2] + 1);
    }
  return table[a.size()][b.size()];
}

/// The known word that `text` misspells by a slip of the hand; otherwise empty. Long words are not compared,
/// since their length is a stranger's choice.
inline std::string nearest(const std::string& text, const std::set<std::string>& known) {
  const auto is_near = [&](const std::string& one) {
    const std::size_t longest = std::max(text.size(), one.size());
    return text != one && longest <= 40 && letters_apart(text, one) <= (longest < 5 ? 1 : 2);
  };
  std::string best;
  for (const std::string& one : known)
    if (is_near(one) && (best.empty() || letters_apart(text, one) < letters_apart(text, best))) best = one;
  return best;
}

}  // namespace sealift
