// SPDX-License-Identifier: Apache-2.0
// The rules of a safe path; see safe_path.hpp.
#include "sealift/bundle/core/safe_path.hpp"

#include <algorithm>
#include <cctype>

#include "bundle/core/foreign_text.hpp"
#include "bundle/core/unicode.hpp"

namespace sealift::bundle {
namespace {

// The rule that `text` breaks; null when it breaks none.
const char* fault_of(std::string_view text, bool decomposed) {
  if (text.empty()) return "it is empty";
  if (text.size() > SafePath::kMaxPath) return "it is longer than 4096 bytes";
  if (text.front() == '/') return "it is absolute";
  if (text.size() > 1 && text[1] == ':' && std::isalpha(static_cast<unsigned char>(text[0])) != 0)
    return "it starts with a drive's letter";
  if (std::any_of(text.begin(), text.end(),
                  [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '\\'; }))
    return "it holds a control character or a backslash";
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('/', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    if (part.empty()) return "it has an empty part";
    if (part == "." || part == "..") return "it has a part that is '.' or '..'";
    if (part.size() > SafePath::kMaxPart) return "a part is longer than 255 bytes";
    begin = end + 1;
  }
  return decomposed ? fault_of_name(composed(text)) : fault_of_name(text);
}

}  // namespace

SafePath SafePath::parse(std::string_view text, std::string_view where) {
  return parse(text, where, false);
}

SafePath SafePath::parse_published(std::string_view text, std::string_view where) {
  return parse(text, where, true);
}

SafePath SafePath::parse(std::string_view text, std::string_view where, bool decomposed) {
  if (const char* fault = fault_of(text, decomposed)) {
    throw Error(ErrorCode::Format, {.what = std::string("a path is not safe: ") + fault,
                                    .where = std::string(where),
                                    .expected = "a relative path below its folder",
                                    .got = printable(text),
                                    .next = "do not use this file; ask its sender for an intact one"});
  }
  return SafePath(std::string(text));
}

std::string SafePath::printable(std::string_view text) {
  constexpr std::size_t kMost = 200;
  if (text.size() <= kMost) return one_line(text);
  return one_line(text.substr(0, whole_letters(text.substr(0, kMost))));
}

bool link_stays_inside(const SafePath& link, std::string_view target) {
  if (target.empty() || target.size() > SafePath::kMaxPath || target.front() == '/') return false;
  if (target.find('\0') != std::string_view::npos) return false;
  long depth = static_cast<long>(std::count(link.text().begin(), link.text().end(), '/'));
  for (std::size_t begin = 0; begin <= target.size();) {
    const std::size_t end = std::min(target.find('/', begin), target.size());
    const std::string_view part = target.substr(begin, end - begin);
    if (part == "..")
      --depth;
    else if (!part.empty() && part != ".")
      ++depth;
    if (depth < 0) return false;
    begin = end + 1;
  }
  return true;
}

}  // namespace sealift::bundle
