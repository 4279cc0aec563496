// SPDX-License-Identifier: Apache-2.0
// A relative path that cannot leave the folder it is joined to: the only kind of path accepted from a bundle.
// The text is checked once, where it comes in (manifest, tar, wheel); what takes a SafePath needs no second check.
#pragma once

#include <compare>
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "sealift/bundle/core/error.hpp"

namespace sealift::bundle {

class SafePath {
 public:
  static constexpr std::size_t kMaxPath = 4096;  // bytes
  static constexpr std::size_t kMaxPart = 255;   // bytes between two slashes

  // Throws Format, naming `where` and the rule that was broken.
  static SafePath parse(std::string_view text, std::string_view where);
  // For a file in a wheel: its letters may also be decomposed, as a Mac names files; they stay as they were published.
  static SafePath parse_published(std::string_view text, std::string_view where);

  const std::string& text() const { return text_; }
  std::filesystem::path below(const std::filesystem::path& root) const { return root / text_; }
  auto operator<=>(const SafePath&) const = default;

  // The first 200 bytes on one line: what could disturb a terminal, a log or a page is written as "\u202e" or "\xff".
  static std::string printable(std::string_view text);

 private:
  explicit SafePath(std::string text) : text_(std::move(text)) {}
  static SafePath parse(std::string_view text, std::string_view where, bool decomposed);

  std::string text_;
};

// True when a symbolic link at `link` (relative to a root) that says `target` stays below that root.
bool link_stays_inside(const SafePath& link, std::string_view target);

}  // namespace sealift::bundle
