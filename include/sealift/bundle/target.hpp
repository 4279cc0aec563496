// SPDX-License-Identifier: Apache-2.0
// The machine that a bundle is made for, as a value: what the packager resolves for and the installer compares with.
#pragma once

#include <charconv>
#include <compare>
#include <optional>
#include <string>
#include <string_view>

namespace sealift::bundle {

// A glibc version such as 2.36; symbol versions (GLIBC_2.36) and manylinux tags speak of the same thing.
struct GlibcVersion {
  unsigned major = 0;
  unsigned minor = 0;

  std::string text() const { return std::to_string(major) + "." + std::to_string(minor); }
  auto operator<=>(const GlibcVersion&) const = default;

  // "2.36", or "2.2.5" whose third number is dropped; nothing else.
  static std::optional<GlibcVersion> parse(std::string_view text) {
    unsigned numbers[3] = {0, 0, 0};
    const char* cursor = text.data();
    const char* const end = text.data() + text.size();
    int count = 0;
    for (;;) {
      if (count == 3) return std::nullopt;
      const auto [next, fault] = std::from_chars(cursor, end, numbers[count]);
      if (fault != std::errc() || next == cursor) return std::nullopt;
      ++count;
      if (next == end) break;
      if (*next != '.') return std::nullopt;
      cursor = next + 1;
    }
    if (count < 2) return std::nullopt;
    return GlibcVersion{numbers[0], numbers[1]};
  }
};

struct Target {
  std::string arch = "x86_64";  // as `uname -m` prints it
  GlibcVersion glibc;           // the oldest one that the bundle is promised to run on

  auto operator<=>(const Target&) const = default;
};

}  // namespace sealift::bundle
