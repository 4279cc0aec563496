// SPDX-License-Identifier: Apache-2.0
// Fields that several documents have, each refused unless it is what it should be: plain names, words that stand for
// the values of an enum, versions, times. json_object.hpp knows how a field is spelled, this header what it means.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "bundle/core/json_object.hpp"
#include "sealift/bundle/core/fields.hpp"
#include "sealift/bundle/core/time.hpp"
#include "sealift/bundle/core/version.hpp"

namespace sealift::bundle {

// Throws CannotCheck: a later version may know the word.
[[noreturn]] void refuse_word(const std::string& word, const std::string& where);

// The word of `names` for a value.
template <class Enum, std::size_t N>
std::string enum_name(const std::pair<Enum, std::string_view> (&names)[N], Enum value) {
  for (const auto& [candidate, name] : names)
    if (candidate == value) return std::string(name);
  return "?";
}

// The inverse of enum_name; throws CannotCheck for a word that is not in `names`.
template <class Enum, std::size_t N>
Enum enum_value(const std::pair<Enum, std::string_view> (&names)[N], const std::string& text,
                const std::string& where) {
  for (const auto& [value, name] : names)
    if (name == text) return value;
  refuse_word(text, where);
}

// The field `key` of an object, which must be a plain name; throws Format.
std::string plain_name(JsonObject& object, const std::string& key);
// A version such as "2.36"; throws Format.
GlibcVersion glibc_version(JsonObject& object, const std::string& key);
// The text of one to four numbers, such as "525.60.13"; throws Format.
std::string dotted_version(JsonObject& object, const std::string& key);
// The text of a time that parse_time takes; throws Format.
std::string time_text(JsonObject& object, const std::string& key);

}  // namespace sealift::bundle
