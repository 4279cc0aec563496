// SPDX-License-Identifier: Apache-2.0
// What the core's launcher table needs of LibTorch: a check that throws its words.
// Found before LibTorch by sealift-launch alone, which so is one small static program with the core's own table in it.
// Texts are joined without streams, whose locales would be most of the program.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace c10 {

struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The arguments as one text: texts, letters and whole numbers.
template <class... Parts>
std::string str(const Parts&... parts) {
  std::string text;
  const auto add = [&](const auto& part) {
    using Part = std::decay_t<decltype(part)>;
    if constexpr (std::is_same_v<Part, char>)
      text += part;
    else if constexpr (std::is_arithmetic_v<Part>)
      text += std::to_string(part);
    else
      text += std::string_view(part);
  };
  (add(parts), ...);
  return text;
}

}  // namespace c10

#define TORCH_CHECK(condition, ...)                                \
  do {                                                             \
    if (!(condition)) throw ::c10::Error(::c10::str(__VA_ARGS__)); \
  } while (false)
