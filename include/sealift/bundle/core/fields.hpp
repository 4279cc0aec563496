// SPDX-License-Identifier: Apache-2.0
// Fields that several documents have, each refused unless it is what it should be: plain names, words that stand for
// the values of an enum, versions. json.hpp knows how a field is spelled, this header what it means.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "bundle/core/json.hpp"
#include "sealift/bundle/manifest/target.hpp"

namespace sealift::bundle {

// A bundle's or key's name: starts with a letter or digit, then letters, digits, '.', '_', '-'; at most 100.
inline bool is_plain_name(std::string_view text) {
  const auto alnum = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); };
  return !text.empty() && text.size() <= 100 && alnum(text.front()) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return alnum(c) || c == '.' || c == '_' || c == '-'; });
}

namespace detail {

template <class Enum, std::size_t N>
std::string enum_name(const std::pair<Enum, std::string_view> (&names)[N], Enum value) {
  for (const auto& [candidate, name] : names)
    if (candidate == value) return std::string(name);
  return "?";
}

template <class Enum, std::size_t N>
Enum enum_value(const std::pair<Enum, std::string_view> (&names)[N], const std::string& text,
                const std::string& where) {
  for (const auto& [value, name] : names)
    if (name == text) return value;
  throw Error(ErrorCode::CannotCheck, {.what = "the manifest uses a word that this version does not know",
                                       .where = where,
                                       .got = SafePath::printable(text),
                                       .next = "use the sealift-install that came with the bundle"});
}

inline std::string plain_name(JsonObject& object, const std::string& key) {
  std::string text = object.string(key, 100);
  if (!is_plain_name(text))
    refuse_json(object.where() + "." + key, "a plain name was expected", SafePath::printable(text));
  return text;
}

inline GlibcVersion glibc_version(JsonObject& object, const std::string& key) {
  const std::string text = object.string(key, 20);
  const std::optional<GlibcVersion> version = GlibcVersion::parse(text);
  if (!version)
    refuse_json(object.where() + "." + key, "a version such as 2.36 was expected", SafePath::printable(text));
  return *version;
}

// One to four numbers, such as "525.60.13".
inline std::string dotted_version(JsonObject& object, const std::string& key) {
  std::string text = object.string(key, 39);
  std::size_t numbers = 1, digits = 0;
  const bool good = std::all_of(text.begin(), text.end(), [&](char c) {
    if (c == '.' && digits > 0) return digits = 0, ++numbers <= 4;
    return c >= '0' && c <= '9' && ++digits <= 9;
  });
  if (!good || digits == 0)
    refuse_json(object.where() + "." + key, "a version such as 525.60.13 was expected", SafePath::printable(text));
  return text;
}

}  // namespace detail

}  // namespace sealift::bundle
