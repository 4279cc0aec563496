// SPDX-License-Identifier: Apache-2.0
// Searches for ".so" and checks the bytes around it; see name_scan.hpp.
#include "packager/native/name_scan.hpp"

#include <string_view>

namespace sealift::packager {

namespace {

constexpr std::size_t kLongest = 128;        // of a name
constexpr std::size_t kKept = 2 * kLongest;  // so that a name across two pieces is found whole
constexpr std::size_t kMaxNames = 1000;      // of one file

bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
         c == '.' || c == '+';
}

bool is_version(char c) {
  return (c >= '0' && c <= '9') || c == '.' || c == '%' || c == 'd' || c == 's';
}

}  // namespace

void NameScan::feed(bundle::ByteView piece) {
  window_.append(bundle::as_text(piece));
  if (window_.size() < 2 * kKept) return;
  scan();
  window_.erase(0, window_.size() - kKept);
}

std::set<std::string> NameScan::finish() {
  window_.push_back('\0');
  scan();
  window_.clear();
  return std::move(names_);
}

// A name that the window cuts off is found whole with the next piece; others are found twice, which a set ignores.
void NameScan::scan() {
  const std::string_view text = window_;
  for (std::size_t at = text.find(".so"); at != text.npos; at = text.find(".so", at + 1)) {
    std::size_t begin = at, after = at + 3;
    while (begin > 0 && at - begin < kLongest && is_name(text[begin - 1])) --begin;
    while (after < text.size() && after - at < kLongest && is_version(text[after])) ++after;
    if (begin == 0 || after == text.size() || text[after] != '\0') continue;
    if (text[begin - 1] != '\0' && text[begin - 1] != '/') continue;
    const std::string_view name = text.substr(begin, after - begin);
    if (name.starts_with("lib") && name.size() > 6 && (at + 3 == after || text[at + 3] == '.') &&
        names_.size() < kMaxNames)
      names_.emplace(name);
  }
}

}  // namespace sealift::packager
