// SPDX-License-Identifier: Apache-2.0
// Parses with the strict reader of both halves, and reads objects; see json.hpp and json_object.hpp.
#include "bundle/core/json.hpp"

#include <algorithm>
#include <optional>

template class nlohmann::basic_json<>;

namespace sealift::bundle {

void refuse_json(std::string_view where, const std::string& why, const std::string& got) {
  throw Error(ErrorCode::Format, {.what = "JSON is not acceptable: " + why,
                                  .where = std::string(where),
                                  .got = got,
                                  .next = "the file is damaged or was made by another program; ask for it again"});
}

Json parse_json(std::string_view text, std::string_view where, std::size_t max_values,
                const TakeJsonElement& take_element) {
  try {
    return parse_strict_json(text, {.max_depth = kMaxJsonDepth, .max_values = max_values}, take_element);
  } catch (const StrictJsonError& error) {
    refuse_json(where, error.what(), SafePath::printable(error.got()));
  }
}

std::string write_json(const Json& value) {
  return value.dump();
}

JsonObject::JsonObject(const Json& value, std::string where) : value_(value), where_(std::move(where)) {
  if (!value.is_object()) refuse_json(where_, "an object was expected", value.type_name());
}

bool JsonObject::has(const std::string& key) const {
  return value_.contains(key);
}

const Json& JsonObject::at(const std::string& key) {
  const auto found = value_.find(key);
  if (found == value_.end()) refuse_json(where_, "the key '" + key + "' is missing");
  seen_.push_back(&found.key());
  return *found;
}

std::string JsonObject::string(const std::string& key, std::size_t max_size) {
  const Json& value = at(key);
  if (!value.is_string()) refuse_json(path(key), "a string was expected", value.type_name());
  const std::string& text = value.get_ref<const std::string&>();
  if (text.size() > max_size) refuse_json(path(key), "a string is too long", std::to_string(text.size()) + " bytes");
  return text;
}

std::uint64_t JsonObject::integer(const std::string& key, std::uint64_t max) {
  const Json& value = at(key);
  if (!value.is_number_unsigned())
    refuse_json(path(key), "a non-negative integer was expected", value.dump().substr(0, 80));
  const auto number = value.get<std::uint64_t>();
  if (number > max) refuse_json(path(key), "an integer is above " + std::to_string(max), std::to_string(number));
  return number;
}

bool JsonObject::boolean(const std::string& key) {
  const Json& value = at(key);
  if (!value.is_boolean()) refuse_json(path(key), "true or false was expected", value.type_name());
  return value.get<bool>();
}

Digest JsonObject::digest(const std::string& key) {
  const std::string text = string(key, 64);
  const std::optional<Digest> digest = Digest::from_hex(text);
  if (!digest) refuse_json(path(key), "a SHA-256 in 64 lower-case hexadecimal digits was expected", text);
  return *digest;
}

const Json& JsonObject::array(const std::string& key, std::size_t max_size) {
  const Json& value = at(key);
  if (!value.is_array()) refuse_json(path(key), "an array was expected", value.type_name());
  if (value.size() > max_size)
    refuse_json(path(key), "an array is too long", std::to_string(value.size()) + " elements");
  return value;
}

JsonObject JsonObject::object(const std::string& key) {
  return {at(key), path(key)};
}

void JsonObject::done() const {
  for (auto item = value_.begin(); item != value_.end(); ++item)
    if (std::find(seen_.begin(), seen_.end(), &item.key()) == seen_.end())
      refuse_json(where_, "the key '" + SafePath::printable(item.key()) + "' is not known to this version");
}

}  // namespace sealift::bundle
