// SPDX-License-Identifier: Apache-2.0
// Writes a target line by line; see target_profile.hpp.
#include "sealift/bundle/manifest/target_profile.hpp"

#include <algorithm>

#include "sealift/bundle/core/digest.hpp"

namespace sealift::bundle {
// One text of a profile: printable ASCII that needs no escape in TOML, at most 40 characters.
bool is_profile_text(std::string_view text) {
  return !text.empty() && text.size() <= kMaxProfileText && text.front() != ' ' && text.back() != ' ' &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
}

namespace {

void write_profile_list(std::string& out, const std::string& key, const std::vector<std::string>& texts) {
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

}  // namespace

// What is known of a target, a TOML key a line (long lists are broken), always in this order. Texts are profile texts.
std::string write_target_keys(const Target& target) {
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
  write_profile_list(out, "flags", target.flags);
  write_profile_list(out, "gpus", target.gpus);
  text("driver", target.driver);
  write_profile_list(out, "python", target.python);
  write_profile_list(out, "crypto", target.crypto);
  if (target.free_gib) out += "free_gib = " + std::to_string(*target.free_gib) + "\n";
  return out;
}

// The first 8 hexadecimal digits of the SHA-256 of those lines: of the values, however they are spaced and ordered.
std::string profile_check(const Target& target) {
  return sha256(as_bytes(write_target_keys(target))).hex().substr(0, 8);
}

std::string write_profile(const Target& target) {
  return "format = " + std::to_string(kProfileFormat) + "\n" + write_target_keys(target) + "check = \"" +
         profile_check(target) + "\"\n";
}

}  // namespace sealift::bundle
