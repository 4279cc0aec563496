// SPDX-License-Identifier: Apache-2.0
// Knows of TOML only texts, comments, brackets and line breaks; all else toml++ complains of by itself, at the latest
// where this scanner would begin to see something else than it does.
#include "packager/job/toml_guard.hpp"

#include <algorithm>
#include <cctype>
#include <string>

namespace sealift::packager {

namespace {

constexpr int kMaxKeyParts = 16;

// Where the text that begins with the quote at `at` ends: at its last quote, or at the line break or end that it runs
// into. A text in three quotes may have two more of its own right before the last three.
std::size_t end_of_text(std::string_view text, std::size_t at) {
  const char quote = text[at];
  const bool many = text.substr(at, 3) == std::string(3, quote);
  const std::size_t width = many ? 3 : 1;
  for (at += width; at < text.size() && (many || text[at] != '\n'); ++at) {
    if (text[at] == '\\' && quote == '"') {
      ++at;
    } else if (text.substr(at, width) == std::string(width, quote)) {
      at += width - 1;
      for (int extra = 0; many && extra < 2 && text.substr(at + 1, 1) == std::string(1, quote); ++extra) ++at;
      break;
    }
  }
  return std::min(at, text.size() - 1);
}

// Of the table header whose '[' stands at `at`.
bool has_key(std::string_view text, std::size_t at) {
  if (text.substr(at, 2) == "[[") ++at;
  at = text.find_first_not_of(" \t", at + 1);
  if (at == text.npos) return true;  // toml++ expects more
  const auto c = static_cast<unsigned char>(text[at]);
  return (c < 0x80 && std::isalnum(c) != 0) || std::string_view("_-\"']").find(text[at]) != std::string_view::npos;
}

}  // namespace

std::optional<TomlFault> fault_of_toml(std::string_view text) {
  int dots = 0;
  std::string open;    // brackets that wait for their other half
  bool value = false;  // an '=' stands before on this line
  const auto fault = [text](std::size_t at, const char* what) {
    const auto lines = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    return TomlFault{.line = 1 + static_cast<unsigned>(lines), .what = what};
  };
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '"' || text[at] == '\'') at = end_of_text(text, at);  // nothing in a text counts
    if (text[at] == '#') at = text.find('\n', at);
    if (at == text.npos) break;
    const char c = text[at];
    if (c == '[' && open.empty() && !value && !has_key(text, at)) return fault(at, "a table without a name");
    if (c == '[' || c == '{') open.push_back(c);
    if (c == ']' || c == '}') {
      if (!open.empty() && open.back() != (c == ']' ? '[' : '{'))
        return fault(at, "a bracket that closes another kind");
      if (!open.empty()) open.pop_back();
      if (open.empty()) value = false;
    }
    if (c == '=') value = true;
    if (c == '\n' && open.empty()) value = false;
    if (std::string_view("\n=,[]{}").find(c) != std::string_view::npos) dots = 0;
    if (c == '.' && ++dots >= kMaxKeyParts) return fault(at, "a key of more than 16 parts");
  }
  return std::nullopt;
}

}  // namespace sealift::packager
