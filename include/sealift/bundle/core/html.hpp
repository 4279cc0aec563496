// SPDX-License-Identifier: Apache-2.0
// Text on its way into a page: what strangers have named must not become a tag or an attribute. Both sides write pages,
// the packager for the media desk and the repository its index.
#pragma once

#include <string>
#include <string_view>

namespace sealift::bundle {

// For text between tags and for attributes in quotes.
inline std::string html_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out.push_back(c);
    }
  return out;
}

}  // namespace sealift::bundle
