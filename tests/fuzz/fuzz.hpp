// SPDX-License-Identifier: Apache-2.0
// What every fuzz target shares: it may refuse with our own error, must not do anything else, and what it accepts must
// hold what the target says. Built with libFuzzer by the preset `fuzz`; seeds come from tests/support/hostile.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "sealift/bundle/core/error.hpp"

namespace sealift::test {

// Ends the program, which is what libFuzzer calls a finding.
inline void must(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

// Runs `action` and takes an Error for an answer; says whether there was none.
template <class Action>
bool accepted(const Action& action) {
  try {
    action();
    return true;
  } catch (const bundle::Error& error) {
    must(error.what()[0] != '\0', "a refusal says why");
    return false;
  }
}

}  // namespace sealift::test

// The body of a target: FUZZ(text) { ... }
#define FUZZ(text)                                                                    \
  static void fuzz_one(std::string_view text);                                        \
  extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) { \
    fuzz_one(std::string_view(reinterpret_cast<const char*>(data), size));            \
    return 0;                                                                         \
  }                                                                                   \
  static void fuzz_one(std::string_view text)
