// SPDX-License-Identifier: Apache-2.0
// Reads the fields that several documents have; see fields_json.hpp.
#include "bundle/core/fields_json.hpp"

#include "sealift/bundle/core/error.hpp"

namespace sealift::bundle {

void refuse_word(const std::string& word, const std::string& where) {
  throw Error(ErrorCode::CannotCheck, {.what = "the manifest uses a word that this version does not know",
                                       .where = where,
                                       .got = SafePath::printable(word),
                                       .next = "use the sealift-install that came with the bundle"});
}

std::string plain_name(JsonObject& object, const std::string& key) {
  std::string text = object.string(key, 100);
  if (!is_plain_name(text))
    refuse_json(object.where() + "." + key, "a plain name was expected", SafePath::printable(text));
  return text;
}

GlibcVersion glibc_version(JsonObject& object, const std::string& key) {
  const std::string text = object.string(key, 20);
  const std::optional<GlibcVersion> version = parse_glibc(text);
  if (!version)
    refuse_json(object.where() + "." + key, "a version such as 2.36 was expected", SafePath::printable(text));
  return *version;
}

std::string dotted_version(JsonObject& object, const std::string& key) {
  std::string text = object.string(key, 39);
  if (!Version::parse(text))
    refuse_json(object.where() + "." + key, "a version such as 525.60.13 was expected", SafePath::printable(text));
  return text;
}

std::string time_text(JsonObject& object, const std::string& key) {
  std::string text = object.string(key, 40);
  if (!parse_time(text))
    refuse_json(object.where() + "." + key, "a time such as 2026-01-31T12:00:00Z was expected",
                SafePath::printable(text));
  return text;
}

}  // namespace sealift::bundle
