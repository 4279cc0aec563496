// SPDX-License-Identifier: Apache-2.0
// Escapes what HTML gives a meaning; see html.hpp.
#include "sealift/bundle/core/html.hpp"

#include "bundle/core/foreign_text.hpp"

namespace sealift::bundle {

std::string html_escaped(std::string_view text) {
  std::string out;
  for (const char c : page_text(text)) switch (c) {
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
