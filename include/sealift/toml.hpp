// SPDX-License-Identifier: Apache-2.0
// The only door to toml++: the packager's toml_file.cpp and the trainer's options.cpp go through it. A leaf that
// belongs to neither half and is not installed, since their headers do not know TOML. The header is vendored from
// upstream's commit 1e8829b (after 3.4.0), because Debian's 3.3 overflows the stack on long keys.
#pragma once

#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0

// Nested tables are freed by recursion, and no file of ours needs a longer key.
#define TOML_MAX_DOTTED_KEYS_DEPTH 16

// The parser's assumption that a value is there does not hold for `a = [}` and for a date before a single digit.
// Nothing is derived from assumptions, so that it goes on to its own error message.
#define TOML_ASSUME(holds) static_cast<void>(0)
#define TOML_ASSERT(holds) static_cast<void>(0)
#include <tomlplusplus/toml.hpp>
