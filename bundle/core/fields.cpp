// SPDX-License-Identifier: Apache-2.0
// Judges names; see fields.hpp.
#include "sealift/bundle/core/fields.hpp"

#include <algorithm>

namespace sealift::bundle {

bool is_plain_name(std::string_view text) {
  const auto alnum = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); };
  return !text.empty() && text.size() <= 100 && alnum(text.front()) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return alnum(c) || c == '.' || c == '_' || c == '-'; });
}

}  // namespace sealift::bundle
