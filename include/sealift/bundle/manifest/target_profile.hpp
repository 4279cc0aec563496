// SPDX-License-Identifier: Apache-2.0
// A target as text to carry out by hand: TOML that can be typed or photographed, with a check line for typing errors.
// The installer writes it, the packager reads it (packager/job/target_profile.hpp) and writes its lock with the same keys.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "sealift/bundle/core/bytes.hpp"
#include "sealift/bundle/core/digest.hpp"
#include "sealift/bundle/manifest/target.hpp"

namespace sealift::bundle {

inline constexpr std::uint64_t kProfileFormat = 1;
inline constexpr std::size_t kMaxProfileText = 40;   // so that every line has at most 60 columns
inline constexpr std::size_t kMaxProfileItems = 12;  // of a list

// One text of a profile: printable ASCII that needs no escape in TOML, at most 40 characters.
inline bool is_profile_text(std::string_view text) {
  return !text.empty() && text.size() <= kMaxProfileText && text.front() != ' ' && text.back() != ' ' &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
}

namespace detail {

inline void write_profile_list(std::string& out, const std::string& key, const std::vector<std::string>& texts) {
  if (texts.empty()) return;
  constexpr std::size_t kColumns = 60;
  std::string line = key + " = [";
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const bool last = i + 1 == texts.size();
    const std::string item = "\"" + texts[i] + "\"" + (last ? "]" : ",");
    if (line.size() + 1 + item.size() > kColumns) {
      out += line + "\n";
      line = " ";
    }
    line += (line.ends_with('[') ? "" : " ") + item;
  }
  out += line + "\n";
}

}  // namespace detail

// What is known of a target, a TOML key a line (long lists are broken), always in this order. Texts are profile texts.
inline std::string write_target_keys(const Target& target) {
  std::string out;
  const auto text = [&out](const char* key, const std::string& value) {
    if (!value.empty()) out += std::string(key) + " = \"" + value + "\"\n";
  };
  text("arch", target.arch);
  if (target.glibc != GlibcVersion{}) text("glibc", target.glibc.text());
  text("glibcxx", target.glibcxx);
  text("cxxabi", target.cxxabi);
  text("distribution", target.distribution);
  text("kernel", target.kernel);
  text("cpu", target.cpu);
  detail::write_profile_list(out, "flags", target.flags);
  detail::write_profile_list(out, "gpus", target.gpus);
  text("driver", target.driver);
  detail::write_profile_list(out, "python", target.python);
  detail::write_profile_list(out, "crypto", target.crypto);
  if (target.free_gib) out += "free_gib = " + std::to_string(*target.free_gib) + "\n";
  return out;
}

// The first 8 hexadecimal digits of the SHA-256 of those lines: of the values, however they are spaced and ordered.
inline std::string profile_check(const Target& target) {
  return sha256(as_bytes(write_target_keys(target))).hex().substr(0, 8);
}

inline std::string write_profile(const Target& target) {
  return "format = " + std::to_string(kProfileFormat) + "\n" + write_target_keys(target) + "check = \"" +
         profile_check(target) + "\"\n";
}

}  // namespace sealift::bundle
