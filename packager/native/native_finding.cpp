// SPDX-License-Identifier: Apache-2.0
// How findings name files; see native_finding.hpp.
#include "packager/native/native_finding.hpp"

#include <fmt/format.h>

#include <cstddef>

namespace sealift::packager {

std::string several(const std::set<std::string>& names) {
  std::string text;
  std::size_t count = 0;
  for (const std::string& name : names)
    if (count++ < 3) text += (text.empty() ? "" : ", ") + name;
  return count > 3 ? fmt::format("{} and {} more", text, count - 3) : text;
}

std::string described(const NativeFile& file) {
  if (file.owner.ends_with(" " + file.path)) return file.owner;  // "the program bin/x"
  const std::size_t site = file.path.find("/site-packages/");
  return (site == file.path.npos ? file.path : file.path.substr(site + 15)) + " of " + file.owner;
}

}  // namespace sealift::packager
