// SPDX-License-Identifier: Apache-2.0
// auditwheel's own rule (repair.py, copylib): the first eight hexadecimal digits of the SHA-256, between a dash and the
// first dot. A wheel that was repaired twice has two.
#include "packager/libraries/renamed_libraries.hpp"

#include <algorithm>
#include <string_view>

namespace sealift::packager {

namespace {

constexpr std::size_t kDigest = 8;

bool ends_with_digest(std::string_view stem) {
  if (stem.size() < kDigest + 2 || stem[stem.size() - kDigest - 1] != '-') return false;
  const std::string_view digest = stem.substr(stem.size() - kDigest);
  return std::all_of(digest.begin(), digest.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

}  // namespace

std::vector<std::string> names_before(const std::string& library) {
  std::vector<std::string> names;
  const std::size_t suffix = library.find(".so");
  if (suffix == library.npos) return names;
  std::string_view stem = std::string_view(library).substr(0, suffix);
  while (ends_with_digest(stem)) {
    stem.remove_suffix(kDigest + 1);
    names.push_back(std::string(stem) + ".so");
  }
  return names;
}

}  // namespace sealift::packager
