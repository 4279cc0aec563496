// SPDX-License-Identifier: Apache-2.0
// RECORD, the list of a wheel's files: CSV rows of path, sha256=<urlsafe base64>, size; or sha384=, sha512=. A row that
// says its digest badly is a row without one: pip and uv install such wheels, and the file's reader computes it
// (wheel.cpp). Source: packaging.python.org, "Recording installed projects".
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "sealift/bundle/core/bytes.hpp"
#include "sealift/bundle/core/digest.hpp"

namespace sealift::bundle {

struct WheelRecordRow {
  std::optional<Digest> sha256;  // nothing for RECORD itself, another kind of digest, or two rows that differ
  std::optional<Bytes> wide;     // a SHA-384 or SHA-512 in its place; the length says which
  std::optional<std::uint64_t> size;

  bool operator==(const WheelRecordRow&) const = default;
};

// Path -> row. Throws Format unless it is CSV of three fields. More than `max_rows` rows are refused before they take
// memory; `where` is for messages.
std::map<std::string, WheelRecordRow> parse_wheel_record(std::string_view text, std::size_t max_rows,
                                                         std::string_view where);

}  // namespace sealift::bundle
