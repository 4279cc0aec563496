// SPDX-License-Identifier: Apache-2.0
// Two steps that reading any HTTP header's text takes (RFC 9110, 5.1 and 5.6.3).
// Below negotiation and the request head, which both read such text.
#pragma once

#include <string>
#include <string_view>

#include "bundle/core/text_parts.hpp"

namespace sealift::offline_repo {

// Without spaces and tabs at its ends: no other character is white space in a header.
inline std::string_view trimmed(std::string_view text) {
  return bundle::trimmed(text, " 	");
}

// ASCII letters only, whatever the locale.
inline std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

}  // namespace sealift::offline_repo
