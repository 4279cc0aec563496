// SPDX-License-Identifier: Apache-2.0
// The machine that a bundle is made for, as a value: what the packager resolves for and the installer compares with.
// `sealift-install probe` finds all of it out, a lock keeps all of it; a manifest carries arch and glibc only.
#pragma once

#include <charconv>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

// An empty text, an empty list and glibc 0.0 stand for what is not known.
struct Target {
  std::string arch = "x86_64";                 // as `uname -m` prints it
  GlibcVersion glibc = {};                     // the oldest one that the bundle is promised to run on
  std::string glibcxx = {};                    // the newest GLIBCXX_ of its libstdc++: "3.4.24"
  std::string cxxabi = {};                     // the newest CXXABI_ of its libstdc++: "1.3.11"
  std::string distribution = {};               // ID and VERSION_ID of os-release: "kylin V10"
  std::string kernel = {};                     // as `uname -r` prints it
  std::string cpu = {};                        // "x86-64-v1" to "x86-64-v4"
  std::vector<std::string> flags = {};         // those of the CPU that numerical code asks for
  std::vector<std::string> gpus = {};          // NVIDIA's: "8 x NVIDIA H200", "1 x 10de:2335"
  std::string driver = {};                     // NVIDIA's kernel driver: "580.65.06"
  std::vector<std::string> python = {};        // the system's own: "3.6"
  std::vector<std::string> crypto = {};        // which libcrypto there is, and signs of FIPS
  std::optional<std::uint64_t> free_gib = {};  // in the folder to install into

  auto operator<=>(const Target&) const = default;
};

// Is dotted version `a` below `b`? Number by number, what is missing counts as 0; "4.19.90-52.ky10" is 4.19.90.
inline bool version_below(std::string_view a, std::string_view b) {
  const auto next = [](std::string_view& text) {
    std::uint64_t number = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (fault != std::errc()) return text = {}, std::uint64_t{0};
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.starts_with('.'))
      text.remove_prefix(1);
    else
      text = {};
    return number;
  };
  while (!a.empty() || !b.empty()) {
    const std::uint64_t left = next(a), right = next(b);
    if (left != right) return left < right;
  }
  return false;
}

}  // namespace sealift::bundle
