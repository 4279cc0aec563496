// SPDX-License-Identifier: Apache-2.0
// Strict JSON, and the only door to nlohmann: one spelling per document, no floats, no duplicate or unknown keys.
// What a signature covers must mean the same thing to every reader, so anything that two parsers could read
// differently is refused.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "bundle/core/json_object.hpp"
#include "sealift/strict_json.hpp"

// Compiled once, in json.cpp, instead of in every source that touches a value.
extern template class nlohmann::basic_json<>;

namespace sealift::bundle {

// Parses UTF-8 text; throws Format naming `where`. What we wrote ourselves may be allowed more values.
Json parse_json(std::string_view text, std::string_view where, std::size_t max_values = kMaxJsonValues,
                const TakeJsonElement& take_element = {});

// The one spelling that we write: sorted keys, no spaces.
std::string write_json(const Json& value);

}  // namespace sealift::bundle
