// SPDX-License-Identifier: Apache-2.0
// All headers of a wheel's METADATA, in order: the documents need fields that may occur many times (Classifier,
// Requires-Dist, License-File). `bundle::Wheel` reads single fields and refuses repeated fields, as the
// installer must; the documents only repeat what the authors wrote, so nothing is refused here. Source:
// packaging.python.org, "Core metadata specifications"; mail headers of RFC 822 with folded lines.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace sealift::packager {

inline constexpr std::size_t kMaxHeaders = 10'000;                    // what comes after them is not read
inline constexpr std::size_t kMaxHeaderValue = 64 << 10;              // bytes; the rest of a longer value is dropped
inline constexpr std::size_t kMaxHeaderBytes = std::size_t{4} << 20;  // of METADATA; its description may go on

class MetadataHeaders {
 public:
  // Never throws: other lines are skipped, and the first empty line ends the headers.
  explicit MetadataHeaders(std::string_view text);

  // The values of a field in order, trimmed, with the line breaks of folded values kept. Case does not count.
  std::vector<std::string> all(std::string_view field) const;
  // The first of them, or nothing.
  std::string first(std::string_view field) const;

 private:
  struct Header {
    std::string name;  // in lower case
    std::string value;
  };
  std::vector<Header> headers_;
};

}  // namespace sealift::packager
