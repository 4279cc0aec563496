// SPDX-License-Identifier: Apache-2.0
// See nearest.hpp. The distance of Damerau and Levenshtein, as a table: words are short.
#include "bundle/core/nearest.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

namespace sealift::bundle {

namespace {

// How many letters must be inserted, removed, replaced or swapped with their neighbour to make one the other.
std::size_t distance(std::string_view a, std::string_view b) {
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

// Likely the same word, mistyped; long keys are not compared, since their length is a stranger's choice.
bool is_near(std::string_view a, std::string_view b) {
  const std::size_t longest = std::max(a.size(), b.size());
  return a != b && longest <= 40 && distance(a, b) <= (longest < 5 ? 1 : 2);
}

}  // namespace

std::string nearest(const std::string& text, const std::set<std::string>& known) {
  std::string best;
  for (const std::string& one : known)
    if (is_near(text, one) && (best.empty() || distance(text, one) < distance(text, best))) best = one;
  return best;
}

}  // namespace sealift::bundle
