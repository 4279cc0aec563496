// SPDX-License-Identifier: Apache-2.0
// A target as text to carry out by hand: TOML that can be typed or photographed, with a check line for typing errors.
// The installer writes it, the packager reads it (packager/tables/target_profile.hpp) and writes its lock with the same
// keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "sealift/bundle/manifest/target.hpp"

namespace sealift::bundle {

inline constexpr std::uint64_t kProfileFormat = 1;
inline constexpr std::size_t kMaxProfileText = 40;   // so that every line has at most 60 columns
inline constexpr std::size_t kMaxProfileItems = 12;  // of a list

// One text of a profile: printable ASCII that needs no escape in TOML, at most 40 characters.
bool is_profile_text(std::string_view text);

// What is known of a target, a TOML key a line (long lists are broken), always in this order. Texts are profile texts.
std::string write_target_keys(const Target& target);

// The first 8 hexadecimal digits of the SHA-256 of those lines: of the values, however they are spaced and ordered.
std::string profile_check(const Target& target);

// The whole profile: its format, the keys, the check.
std::string write_profile(const Target& target);

}  // namespace sealift::bundle
