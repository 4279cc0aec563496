// SPDX-License-Identifier: Apache-2.0
// The English of several phrases.
// For tests that say in one line who is named.
#pragma once

#include "verify/verdict/check.hpp"

namespace sealift::verify {

inline std::vector<std::string> english(const std::vector<Phrase>& phrases) {
  std::vector<std::string> texts;
  for (const auto& phrase : phrases) texts.push_back(phrase.en);
  return texts;
}

}  // namespace sealift::verify
