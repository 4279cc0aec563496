// SPDX-License-Identifier: Apache-2.0
// Which of several wheels fits a target best: the order of PEP 425, with the manylinux levels of PEP 600, and of PEP
// 427 for builds of one release. uv lists every wheel of a package; the lock names one, so the choice is made here and
// nowhere else.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sealift/bundle/manifest/target.hpp"

namespace sealift::packager {

// Smaller is better.
struct WheelRank {
  int group = 0;     // position of interpreter and ABI: cp311-cp311, cp311-abi3, cp311-none, cp310-abi3, ..., py3-none
  int platform = 0;  // how far below the target's glibc the wheel was built; `any` and `linux` come after
  auto operator<=>(const WheelRank&) const = default;
};

// The build of a release: a number and what is behind it; a wheel without one is before all others.
struct BuildTag {
  std::optional<std::uint64_t> number;
  std::string rest;
  auto operator<=>(const BuildTag&) const = default;
};

struct WheelFit {
  WheelRank rank;
  BuildTag build;              // of wheels of one rank the highest is taken: a rebuild exists because the first was bad
  bundle::GlibcVersion glibc;  // of its platform tag; 0.0 for none
};

// std::nullopt when the wheel does not run on the target, or `file_name` is not a wheel's. `python` is like "3.11".
std::optional<WheelFit> fit_wheel(std::string_view file_name, std::string_view python, const bundle::Target& target);
// The glibc of a wheel's tag, which may be newer than the target's; std::nullopt when a newer glibc would not make the
// wheel fit.
std::optional<bundle::GlibcVersion> glibc_wanted(std::string_view file_name, std::string_view python,
                                                 bundle::Target target);

}  // namespace sealift::packager
