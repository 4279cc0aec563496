// SPDX-License-Identifier: Apache-2.0
// Dot-separated version numbers that compare: glibc, symbol versions, kernels, drivers, Python releases. One parser and
// one comparison, since both sides of the gap must agree on which of two is older. Documents keep the text as its owner
// spells it ("450.80.02") and compare it through here.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sealift::bundle {

// Up to four numbers; missing ones count as 0, so 580 equals 580.0.
struct Version {
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  std::uint32_t patch = 0;
  std::uint32_t build = 0;

  // One to four numbers of at most nine digits each and nothing else; std::nullopt for any other text.
  static std::optional<Version> parse(std::string_view text);
  // The numbers that `text` begins with, as far as a Version holds them: "4.19.90-52.ky10" gives 4.19.90, "" gives 0.0.
  static Version leading(std::string_view text);

  // "2.36", "3.4.29": two numbers, and those behind them up to the last that is not 0.
  std::string text() const;
  auto operator<=>(const Version&) const = default;
};

// For a C library; 0.0 stands for none or not known.
using GlibcVersion = Version;

// "2.36", or "2.2.5" whose third number is dropped, as wheel tags name two numbers only; std::nullopt for other texts.
std::optional<GlibcVersion> parse_glibc(std::string_view text);

}  // namespace sealift::bundle
