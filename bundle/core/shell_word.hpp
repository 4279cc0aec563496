// SPDX-License-Identifier: Apache-2.0
// A text as one word of a POSIX shell, for commands that messages print and people paste. Quoted only where a shell
// would read it otherwise, so that most commands look as people type them.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace sealift::bundle {

inline std::string shell_word(const std::string& text) {
  const auto needs_no_quotes = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("/._-+=:,@%").find(c) != std::string_view::npos;
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), needs_no_quotes)) return text;
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace sealift::bundle
