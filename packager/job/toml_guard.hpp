// SPDX-License-Identifier: Apache-2.0
// What toml++ 3.3 must not be shown: keys of thousands of parts, which it frees by recursion until the stack is gone,
// and table headers that start with no key and brackets of different kinds, where it goes on by an assumption.
// Asked before every parse.
#pragma once

#include <optional>
#include <string_view>

namespace sealift::packager {

struct TomlFault {
  unsigned line = 0;
  const char* what = "";
};

std::optional<TomlFault> fault_of_toml(std::string_view text);

}  // namespace sealift::packager
