// SPDX-License-Identifier: Apache-2.0
// Reads versions number by number; see version.hpp.
#include "sealift/bundle/core/version.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>

namespace sealift::bundle {
namespace {

constexpr std::size_t kMostNumbers = 4;
constexpr std::size_t kMostDigits = 9;  // so that a number fits into 32 bits
constexpr std::uint32_t kTooLarge = std::numeric_limits<std::uint32_t>::max();

struct Prefix {
  std::array<std::uint32_t, kMostNumbers> numbers{};
  std::size_t count = 0;  // of numbers read
  std::size_t size = 0;   // characters that they and the dots between them take
  bool exact = true;      // false: a number was too large and stands as kTooLarge

  Version version() const { return {numbers[0], numbers[1], numbers[2], numbers[3]}; }
};

Prefix read_prefix(std::string_view text) {
  Prefix prefix;
  for (std::size_t at = 0; prefix.count < kMostNumbers;) {
    const std::size_t begin = at;
    std::uint32_t number = 0;
    for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at)
      if (at - begin < kMostDigits) number = number * 10 + static_cast<std::uint32_t>(text[at] - '0');
    if (at == begin) break;
    if (at - begin > kMostDigits) {
      number = kTooLarge;
      prefix.exact = false;
    }
    prefix.numbers[prefix.count++] = number;
    prefix.size = at;
    if (at == text.size() || text[at] != '.') break;
    ++at;
  }
  return prefix;
}

}  // namespace

std::optional<Version> Version::parse(std::string_view text) {
  const Prefix prefix = read_prefix(text);
  if (prefix.count == 0 || !prefix.exact || prefix.size != text.size()) return std::nullopt;
  return prefix.version();
}

Version Version::leading(std::string_view text) {
  return read_prefix(text).version();
}

std::string Version::text() const {
  std::string out = std::to_string(major) + "." + std::to_string(minor);
  if (patch != 0 || build != 0) out += "." + std::to_string(patch);
  if (build != 0) out += "." + std::to_string(build);
  return out;
}

std::optional<GlibcVersion> parse_glibc(std::string_view text) {
  const std::optional<Version> version = Version::parse(text);
  const auto dots = std::count(text.begin(), text.end(), '.');
  if (!version || dots < 1 || dots > 2) return std::nullopt;
  return GlibcVersion{version->major, version->minor};
}

}  // namespace sealift::bundle
