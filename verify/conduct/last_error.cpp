// SPDX-License-Identifier: Apache-2.0
// Looks for the line from the end.
// See last_error.hpp.
// The forms are those of our own programs (trainer/failure.hpp, local_ranks.cpp) and of Python's tracebacks.
#include "verify/conduct/last_error.hpp"

#include "bundle/core/text_parts.hpp"

#include <cctype>
#include <string_view>
#include <vector>

namespace sealift::verify {
namespace {

constexpr std::size_t kMost = 600;

std::string_view without_end(std::string_view line) {
  const auto end = line.find_last_not_of(" \r\t");
  return end == line.npos ? std::string_view() : line.substr(0, end + 1);
}

bool is_indented(std::string_view line) {
  return line.starts_with(" ") || line.starts_with("\t");
}

/// What follows from another rank's failure, or is said before anything fails.
bool is_consequence(std::string_view line) {
  return line.find("; ending the other ranks") != line.npos || line.find(": starting ") != line.npos ||
         line.find("store at ") != line.npos;
}

/// "sealift-train: rank 1: " and "[rank0]: " before the words.
std::string_view without_name(std::string_view line) {
  if (line.starts_with("[rank")) {
    if (const auto end = line.find("]: "); end != line.npos) line.remove_prefix(end + 3);
  }
  if (!line.starts_with("sealift-")) return line;
  const auto end = line.find(": ");
  return end == line.npos ? line : line.substr(end + 2);
}

/// "ValueError: no such file", also of a module.
bool is_exception(std::string_view line) {
  line = without_name(line);
  const auto colon = line.find(':');
  const auto name = line.substr(0, colon);
  if (name.empty() || name.find_first_of(" /'\"") != name.npos) return false;
  return name.ends_with("Error") || name.ends_with("Exception") || name.ends_with("Interrupt");
}

template <class Wanted>
std::size_t last_of(const std::vector<std::string_view>& lines, const Wanted& wanted) {
  for (auto i = lines.size(); i-- > 0;) {
    if (!lines[i].empty() && !is_consequence(lines[i]) && wanted(lines[i])) return i;
  }
  return lines.size();
}

}  // namespace

std::string last_error(const std::string& said) {
  std::vector<std::string_view> lines;
  for (const auto line : bundle::split(said, '\n')) lines.push_back(without_end(line));
  auto at = last_of(lines, is_exception);
  if (at == lines.size()) at = last_of(lines, [](auto line) { return line.starts_with("sealift-"); });
  if (at == lines.size()) at = last_of(lines, [](auto line) { return !is_indented(line); });
  if (at == lines.size()) at = last_of(lines, [](auto) { return true; });
  if (at == lines.size()) return {};
  std::string text(without_name(lines[at]));
  for (auto i = at + 1; i < lines.size() && is_indented(lines[i]) && !is_exception(lines[at]); ++i) {
    text += "; " + std::string(lines[i].substr(lines[i].find_first_not_of(" \t")));
  }
  return text.size() <= kMost ? text : text.substr(0, kMost) + "…";
}

}  // namespace sealift::verify
