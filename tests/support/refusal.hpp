// SPDX-License-Identifier: Apache-2.0
// What a refusal looks like to a test: the code, and the message it must hold.
#pragma once

#include <doctest/doctest.h>

#include <optional>
#include <string>

#include "sealift/bundle/core/error.hpp"

namespace sealift::test {

// The Error that `action` throws; a test failure when it throws none.
template <class Action>
bundle::Error refusal(const Action& action) {
  try {
    action();
  } catch (const bundle::Error& error) {
    return error;
  }
  FAIL("nothing was refused");
  return {bundle::ErrorCode::Usage, {}};
}

inline bool mentions(const bundle::Error& error, const std::string& text) {
  return std::string(error.what()).find(text) != std::string::npos;
}

}  // namespace sealift::test

// Checks code and a part of the message of what `expression` throws.
#define CHECK_REFUSED(expression, error_code, text)                                             \
  do {                                                                                          \
    const sealift::bundle::Error refused = sealift::test::refusal([&] { (void)(expression); }); \
    INFO(refused.what());                                                                       \
    CHECK(refused.code() == sealift::bundle::ErrorCode::error_code);                            \
    CHECK(sealift::test::mentions(refused, text));                                              \
  } while (false)
