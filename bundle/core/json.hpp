// SPDX-License-Identifier: Apache-2.0
// Strict JSON, and the only door to nlohmann: one spelling per document, no floats, no duplicate or unknown keys.
// What a signature covers must mean the same thing to every reader, so anything that two parsers could read
// differently is refused.
#pragma once

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "sealift/bundle/core/digest.hpp"
#include "sealift/bundle/core/safe_path.hpp"
#include "sealift/strict_json.hpp"

namespace sealift::bundle {

using Json = nlohmann::json;  // object keys are kept sorted, so writing is deterministic

inline constexpr int kMaxJsonDepth = 32;
inline constexpr std::size_t kMaxJsonValues = 2'000'000;  // each costs memory, however few bytes it is written in
inline constexpr std::uint64_t kMaxJsonInteger = (std::uint64_t{1} << 53) - 1;

namespace detail {

[[noreturn]] inline void refuse_json(std::string_view where, const std::string& why, const std::string& got = {}) {
  throw Error(ErrorCode::Format, {.what = "JSON is not acceptable: " + why,
                                  .where = std::string(where),
                                  .got = got,
                                  .next = "the file is damaged or was made by another program; ask for it again"});
}

}  // namespace detail

// Parses UTF-8 text; throws Format naming `where`. What we wrote ourselves may be allowed more values.
inline Json parse_json(std::string_view text, std::string_view where, std::size_t max_values = kMaxJsonValues,
                       const TakeJsonElement& take_element = {}) {
  try {
    return parse_strict_json(text, {.max_depth = kMaxJsonDepth, .max_values = max_values}, take_element);
  } catch (const StrictJsonError& error) {
    detail::refuse_json(where, error.what(), SafePath::printable(error.got()));
  }
}

// The one spelling that we write: sorted keys, no spaces.
inline std::string write_json(const Json& value) {
  return value.dump();
}

// Reads one JSON object field by field; done() refuses fields that nobody asked for.
class JsonObject {
 public:
  JsonObject(const Json& value, std::string where) : value_(value), where_(std::move(where)) {
    if (!value.is_object()) detail::refuse_json(where_, "an object was expected", value.type_name());
  }

  const std::string& where() const { return where_; }
  bool has(const std::string& key) const { return value_.contains(key); }

  const Json& at(const std::string& key) {
    const auto found = value_.find(key);
    if (found == value_.end()) detail::refuse_json(where_, "the key '" + key + "' is missing");
    seen_.push_back(&found.key());
    return *found;
  }
  std::string string(const std::string& key, std::size_t max_size = 4096) {
    const Json& value = at(key);
    if (!value.is_string()) detail::refuse_json(path(key), "a string was expected", value.type_name());
    const std::string& text = value.get_ref<const std::string&>();
    if (text.size() > max_size)
      detail::refuse_json(path(key), "a string is too long", std::to_string(text.size()) + " bytes");
    return text;
  }
  std::uint64_t integer(const std::string& key, std::uint64_t max = kMaxJsonInteger) {
    const Json& value = at(key);
    if (!value.is_number_unsigned())
      detail::refuse_json(path(key), "a non-negative integer was expected", value.dump().substr(0, 80));
    const auto number = value.get<std::uint64_t>();
    if (number > max)
      detail::refuse_json(path(key), "an integer is above " + std::to_string(max), std::to_string(number));
    return number;
  }
  bool boolean(const std::string& key) {
    const Json& value = at(key);
    if (!value.is_boolean()) detail::refuse_json(path(key), "true or false was expected", value.type_name());
    return value.get<bool>();
  }
  Digest digest(const std::string& key) {
    const std::string text = string(key, 64);
    const std::optional<Digest> digest = Digest::from_hex(text);
    if (!digest) detail::refuse_json(path(key), "a SHA-256 in 64 lower-case hexadecimal digits was expected", text);
    return *digest;
  }
  const Json& array(const std::string& key, std::size_t max_size) {
    const Json& value = at(key);
    if (!value.is_array()) detail::refuse_json(path(key), "an array was expected", value.type_name());
    if (value.size() > max_size)
      detail::refuse_json(path(key), "an array is too long", std::to_string(value.size()) + " elements");
    return value;
  }
  JsonObject object(const std::string& key) { return {at(key), path(key)}; }

  void done() const {
    for (auto item = value_.begin(); item != value_.end(); ++item)
      if (std::find(seen_.begin(), seen_.end(), &item.key()) == seen_.end())
        detail::refuse_json(where_, "the key '" + SafePath::printable(item.key()) + "' is not known to this version");
  }

 private:
  std::string path(const std::string& key) const { return where_ + "." + key; }

  const Json& value_;
  std::string where_;
  std::vector<const std::string*> seen_;  // keys of value_
};

}  // namespace sealift::bundle
