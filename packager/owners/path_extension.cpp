// SPDX-License-Identifier: Apache-2.0
// Line by line: none of these statements does anything else in whatever order they stand, so no grammar is needed; see
// path_extension.hpp. Source: packaging.python.org, "Packaging namespace packages".
#include "packager/owners/path_extension.hpp"

#include <algorithm>
#include <string>

namespace sealift::packager {

namespace {

constexpr std::string_view kExtending[] = {
    "__path__ = __import__('pkgutil').extend_path(__path__, __name__)",
    "__path__ = pkgutil.extend_path(__path__, __name__)",
    "__path__ = extend_path(__path__, __name__)",
    "__import__('pkg_resources').declare_namespace(__name__)",
    "pkg_resources.declare_namespace(__name__)",
    "declare_namespace(__name__)",
};
constexpr std::string_view kAround[] = {
    "from pkgutil import extend_path",
    "import pkgutil",
    "import pkg_resources",
    "from pkg_resources import declare_namespace",
    "from __future__ import absolute_import",
    "from __future__ import annotations",
    "try:",
    "except ImportError:",
    "except ModuleNotFoundError:",
    "except Exception:",
    "except:",
    "pass",
};

template <std::size_t N>
bool is_one_of(std::string_view statement, const std::string_view (&list)[N]) {
  return std::find(std::begin(list), std::end(list), statement) != std::end(list);
}

// Without indentation, comment and what else may differ in the writing; a '#' stands in none of the statements.
std::string bare(std::string_view line) {
  std::string out(line.substr(0, line.find('#')));
  const std::size_t begin = out.find_first_not_of(" \t"), end = out.find_last_not_of(" \t\r;");
  if (begin == out.npos || end == out.npos || end < begin) return {};
  out = out.substr(begin, end + 1 - begin);
  std::replace(out.begin(), out.end(), '"', '\'');
  return out;
}

// Whether Python sees other lines than we do: ended by a carriage return alone, or decoded by a comment's wish (UTF-7
// can hide a line's end).
bool is_read_otherwise(std::string_view source) {
  for (std::size_t at = source.find('\r'); at != source.npos; at = source.find('\r', at + 1))
    if (source.substr(at + 1, 1) != "\n") return true;
  for (std::size_t at = source.find("coding"); at != source.npos; at = source.find("coding", at + 1)) {
    std::string_view wish = source.substr(at + 6);
    if (!wish.starts_with(':') && !wish.starts_with('=')) continue;
    wish.remove_prefix(std::min(wish.find_first_not_of(" \t", 1), wish.size()));
    if (!wish.starts_with("utf-8") && !wish.starts_with("UTF-8")) return true;
  }
  return false;
}

// Where the statements begin: behind a byte order mark, comments and empty lines, and a text in three quotes.
std::string_view behind_text(std::string_view source) {
  if (source.starts_with("\xef\xbb\xbf")) source.remove_prefix(3);
  std::string_view rest = source;
  while (!rest.empty() && bare(rest.substr(0, rest.find('\n'))).empty())
    rest.remove_prefix(std::min(rest.find('\n'), rest.size() - 1) + 1);
  const std::string_view quotes = rest.substr(0, 3);
  if (quotes != "\"\"\"" && quotes != "'''") return source;
  const std::size_t end = rest.find(quotes, 3);
  // A backslash could hide an end, and what stands on the last line of a text is not looked at.
  if (end == rest.npos || rest.substr(0, end).find('\\') != rest.npos) return source;
  return rest.substr(end + 3);
}

}  // namespace

bool only_extends_path(std::string_view source) {
  if (source.size() > kMaxPathExtension || is_read_otherwise(source)) return false;
  bool extends = false;
  for (std::string_view rest = behind_text(source); !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string statement = bare(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (statement.empty()) continue;
    const bool extending = is_one_of(statement, kExtending);
    if (!extending && !is_one_of(statement, kAround)) return false;
    extends = extends || extending;
  }
  return extends;
}

}  // namespace sealift::packager
