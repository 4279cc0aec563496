// SPDX-License-Identifier: Apache-2.0
// One pass over the lines; see metadata_headers.hpp.
#include "packager/resolve/metadata_headers.hpp"

#include "bundle/core/text_parts.hpp"
#include "bundle/core/unicode.hpp"

namespace sealift::packager {

using bundle::trimmed;

MetadataHeaders::MetadataHeaders(std::string_view text) {
  text = text.substr(0, kMaxHeaderBytes);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) break;
    if (line.front() == ' ' || line.front() == '\t') {  // continues the previous value
      if (headers_.empty()) continue;
      std::string& value = headers_.back().value;
      const std::size_t room = kMaxHeaderValue - value.size();
      value.append(("\n" + std::string(trimmed(line))).substr(0, room));
      continue;
    }
    const std::size_t colon = line.find(':');
    if (colon == line.npos || colon == 0) continue;
    if (headers_.size() == kMaxHeaders) break;
    headers_.push_back({.name = bundle::case_folded(trimmed(line.substr(0, colon))),
                        .value = std::string(trimmed(line.substr(colon + 1)).substr(0, kMaxHeaderValue))});
  }
}

std::vector<std::string> MetadataHeaders::all(std::string_view field) const {
  std::vector<std::string> values;
  for (const Header& header : headers_)
    if (header.name == bundle::case_folded(field) && !trimmed(header.value).empty())
      values.emplace_back(trimmed(header.value));
  return values;
}

std::string MetadataHeaders::first(std::string_view field) const {
  const std::vector<std::string> values = all(field);
  return values.empty() ? std::string() : values.front();
}

}  // namespace sealift::packager
