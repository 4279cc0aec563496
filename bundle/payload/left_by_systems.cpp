// SPDX-License-Identifier: Apache-2.0
// A mark of a copy stands before the ending, and no name of a bundle has a space or a parenthesis; see
// left_by_systems.hpp.
#include "bundle/payload/left_by_systems.hpp"

namespace sealift::bundle {

namespace {

constexpr std::string_view kDigits = "0123456789";

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of(kDigits) == text.npos;
}

// Where the mark of a copy begins; npos: there is none.
std::size_t mark_of(std::string_view stem) {
  if (const std::size_t dash = stem.find(" - "); dash != stem.npos) return dash;
  const std::size_t open = stem.rfind('(');
  if (open != stem.npos && stem.ends_with(')') && is_number(stem.substr(open + 1, stem.size() - open - 2)))
    return open > 0 && stem[open - 1] == ' ' ? open - 1 : open;
  const std::size_t copy = stem.rfind(" copy");
  if (copy == stem.npos) return copy;
  const std::string_view rest = stem.substr(copy + std::string_view(" copy").size());
  return rest.empty() || (rest[0] == ' ' && is_number(rest.substr(1))) ? copy : stem.npos;
}

}  // namespace

bool is_left_by_system(std::string_view name) {
  return name.starts_with("._");
}

std::optional<std::string> original_name(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot == name.npos) return std::nullopt;
  const std::size_t mark = mark_of(name.substr(0, dot));
  if (mark == name.npos || mark == 0) return std::nullopt;
  return std::string(name.substr(0, mark)) + std::string(name.substr(dot));
}

}  // namespace sealift::bundle
