// SPDX-License-Identifier: Apache-2.0
// Single headers of a wheel's METADATA, as pages show them. What a resolver needs is read by the wheel reader; this is
// text for people and for the older JSON API, and any of it may be missing.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "offline_repo/protocols/header_text.hpp"

namespace sealift::offline_repo {

// The values of the headers with this name, in their order; what follows the first empty line is the description.
inline std::vector<std::string> metadata_values(std::string_view metadata, std::string_view name) {
  std::vector<std::string> values;
  for (std::size_t begin = 0; begin < metadata.size();) {
    const std::size_t end = std::min(metadata.find('\n', begin), metadata.size());
    const std::string_view line = metadata.substr(begin, end - begin);
    if (trimmed(line).empty() || line == "\r") break;
    if (line.size() > name.size() && line[name.size()] == ':' &&
        lower_case(line.substr(0, name.size())) == lower_case(name)) {
      std::string_view value = trimmed(line.substr(name.size() + 1));
      if (value.ends_with('\r')) value.remove_suffix(1);
      values.emplace_back(value);
    }
    begin = end + 1;
  }
  return values;
}

// The first of them; empty without one.
inline std::string metadata_header(std::string_view metadata, std::string_view name) {
  const std::vector<std::string> values = metadata_values(metadata, name);
  return values.empty() ? std::string() : values.front();
}

}  // namespace sealift::offline_repo
