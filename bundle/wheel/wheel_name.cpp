// SPDX-License-Identifier: Apache-2.0
#include "sealift/bundle/wheel/wheel_name.hpp"

#include <algorithm>
#include <vector>

#include "bundle/core/text_parts.hpp"

namespace sealift::bundle {

namespace {

// Letters and digits, with '.', '_' and '-' between them: the name is a folder's (headers), and ".." is one level up.
bool is_project_name(std::string_view name) {
  const auto letter_or_digit = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  return letter_or_digit(name.front()) && letter_or_digit(name.back()) &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return letter_or_digit(c) || c == '.' || c == '_' || c == '-'; });
}

}  // namespace

std::optional<WheelName> parse_wheel_name(std::string_view file_name) {
  if (!file_name.ends_with(".whl")) return std::nullopt;
  file_name.remove_suffix(4);
  const std::vector<std::string_view> views = split(file_name, '-');
  if (std::find(views.begin(), views.end(), "") != views.end()) return std::nullopt;
  const std::vector<std::string> parts(views.begin(), views.end());
  if (parts.size() != 5 && parts.size() != 6) return std::nullopt;
  if (!is_project_name(parts[0])) return std::nullopt;
  const std::size_t tags = parts.size() - 3;
  return WheelName{parts[0], parts[1], tags == 3 ? parts[2] : "", parts[tags], parts[tags + 1], parts[tags + 2]};
}

std::string normalized_project_name(std::string_view name) {
  std::string out;
  bool run = false;
  for (const char c : name) {
    const bool separator = c == '-' || c == '_' || c == '.';
    if (!separator)
      out.push_back(c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c);
    else if (!run)
      out.push_back('-');
    run = separator;
  }
  return out;
}

std::string normalized_version(std::string_view version) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  const auto letter = [lower](char c) { return lower(c) >= 'a' && lower(c) <= 'z'; };
  std::vector<std::string> parts;
  bool local = false;       // behind '+'
  std::size_t release = 0;  // how many parts are the release: the numbers before anything else
  if (!version.empty() && lower(version.front()) == 'v') version.remove_prefix(1);
  for (std::size_t at = 0; at < version.size();) {
    std::size_t end = at;
    if (digit(version[at])) {
      while (end < version.size() && digit(version[end])) ++end;
      std::string_view number = version.substr(at, end - at);
      while (number.size() > 1 && number.front() == '0') number.remove_prefix(1);
      if (release == parts.size()) ++release;
      parts.emplace_back(number);
    } else if (letter(version[at])) {
      std::string word;
      for (; end < version.size() && letter(version[end]); ++end) word.push_back(lower(version[end]));
      parts.push_back(word == "alpha"                                     ? "a"
                      : word == "beta"                                    ? "b"
                      : word == "c" || word == "pre" || word == "preview" ? "rc"
                      : word == "rev" || word == "r"                      ? "post"
                                                                          : word);
    } else {
      end = at + 1;
      if (version[at] == '+' || version[at] == '!') parts.emplace_back(1, version[at]);
      local = local || version[at] == '+';
      const bool between = at > 0 && digit(version[at - 1]) && end < version.size() && digit(version[end]);
      if (version[at] == '-' && between && !local) parts.emplace_back("post");  // 1.0-1 is 1.0.post1
    }
    at = end;
  }
  for (; release > 1 && parts[release - 1] == "0"; --release)
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(release) - 1);
  std::string out;
  for (const std::string& part : parts) out += (out.empty() ? "" : ".") + part;
  return out;
}

}  // namespace sealift::bundle
