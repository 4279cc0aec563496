// SPDX-License-Identifier: Apache-2.0
// What a client's headers ask for: which form of an index page, which part of a file, whether it has it already.
// Pure functions over hostile text, apart from the server so that every case is a line in a test.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace sealift::offline_repo {

enum class IndexFormat {
  Json,       // PEP 691
  Html,       // PEP 503 under PEP 691's own media type
  PlainHtml,  // PEP 503 as text/html
};

std::string_view content_type(IndexFormat format);

// The form that `accept` (an Accept header; empty: anything) likes best; `asked`, the value of ?format=, goes before
// it. On equal terms what is named exactly wins, then JSON among the named, then text/html for "*/*" alone.
// Nothing when no form is acceptable.
std::optional<IndexFormat> choose_format(std::string_view accept, std::string_view asked);

struct ByteRange {
  std::uint64_t first = 0;
  std::uint64_t count = 0;

  bool operator==(const ByteRange&) const = default;
};

enum class RangeKind {
  Whole,          // no range, or one that the specification lets a server ignore: several, malformed, other units
  Part,           // one range that lies at least partly inside
  Unsatisfiable,  // one range that lies outside
};

struct RangeAnswer {
  RangeKind kind = RangeKind::Whole;
  ByteRange range;  // what to send; for Unsatisfiable empty
};

// RFC 9110 section 14: `header` is a Range header or empty, `size` the file's.
RangeAnswer answer_range(std::string_view header, std::uint64_t size);

// If-None-Match: does the list `header` hold `etag` (quoted, strong), compared weakly; "*" holds all.
bool lists_etag(std::string_view header, std::string_view etag);

}  // namespace sealift::offline_repo
