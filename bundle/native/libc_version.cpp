// SPDX-License-Identifier: Apache-2.0
// Looks for the banner of csu/version.c; see libc_version.hpp.
#include "sealift/bundle/native/libc_version.hpp"

#include <algorithm>
#include <string>
#include <string_view>

namespace sealift::bundle {
namespace {

constexpr std::string_view kBanner = " release version ";
constexpr std::uint64_t kMaxRead = std::uint64_t{64} << 20;
constexpr std::size_t kLongest = 64;  // of the banner's words and the version behind them

// "2.31" of "... release version 2.31.\n".
std::optional<GlibcVersion> version_at(std::string_view text) {
  const auto of_version = [](char c) { return (c >= '0' && c <= '9') || c == '.'; };
  std::string_view number =
      text.substr(0, static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), of_version) - text.begin()));
  while (number.ends_with('.')) number.remove_suffix(1);
  const std::optional<Version> version = Version::parse(number);
  return version && version->major == 2 ? std::optional(GlibcVersion{2, version->minor}) : std::nullopt;
}

std::optional<GlibcVersion> in_banner(ByteSource& libc) {
  std::string window;  // the end of the last piece, and the new one
  for (std::uint64_t offset = 0; offset < std::min(libc.size(), kMaxRead);) {
    const ByteView piece = libc.view(offset, std::size_t{1} << 20);
    window.append(as_text(piece));
    offset += piece.size();
    const bool last = offset >= libc.size();
    for (std::size_t at = window.find(kBanner); at != window.npos; at = window.find(kBanner, at + 1)) {
      if (!last && window.size() - at < kLongest) break;  // the version may be in the next piece
      if (const auto version = version_at(std::string_view(window).substr(at + kBanner.size(), kLongest)))
        return version;
    }
    if (window.size() > kLongest) window.erase(0, window.size() - kLongest);
  }
  return std::nullopt;
}

}  // namespace

std::optional<GlibcVersion> libc_version(ByteSource& libc, const ElfFile& elf) {
  const std::optional<GlibcVersion> newest = elf.glibc_offered();
  const std::optional<GlibcVersion> said = in_banner(libc);
  return newest && said ? std::max(newest, said) : newest ? newest : said;
}

}  // namespace sealift::bundle
