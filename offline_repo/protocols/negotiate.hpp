// SPDX-License-Identifier: Apache-2.0
// What a client's headers ask for: the format of an index page, a part of a file, only a newer version. Pure functions
// over hostile text, apart from the server so that every case is a line in a test.
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

// The format that `accept` (an Accept header; empty: anything) prefers; `asked`, the value of ?format=, takes
// precedence. Among equals an exactly named one wins, then JSON among the named, then text/html for "*/*" alone.
// Nothing when no format is acceptable.
std::optional<IndexFormat> choose_format(std::string_view accept, std::string_view asked);

struct ByteRange {
  std::uint64_t first = 0;
  std::uint64_t count = 0;

  bool operator==(const ByteRange&) const = default;
};

enum class RangeKind {
  Whole,          // no range, or one that a server may ignore: several, malformed, other units
  Part,           // one range that lies at least partly inside
  Unsatisfiable,  // one range that lies outside
};

struct RangeAnswer {
  RangeKind kind = RangeKind::Whole;
  ByteRange range;  // what to send; for Unsatisfiable empty
};

// RFC 9110 section 14: `header` is a Range header or empty, `size` the file's.
RangeAnswer answer_range(std::string_view header, std::uint64_t size);

// Whether If-None-Match `header` lists `etag` (quoted, strong), by weak comparison; "*" lists all.
bool lists_etag(std::string_view header, std::string_view etag);

}  // namespace sealift::offline_repo
