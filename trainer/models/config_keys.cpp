// SPDX-License-Identifier: Apache-2.0
// See config_keys.hpp.
#include "trainer/models/config_keys.hpp"

#include <c10/util/Exception.h>

namespace sealift::trainer {
namespace {

std::string shown(const ConfigKeys::Json& value) {
  const auto text = value.dump(-1, ' ', false, ConfigKeys::Json::error_handler_t::replace);
  return text.size() > 60 ? text.substr(0, 60) + "…" : text;
}

}  // namespace

ConfigKeys::ConfigKeys(const Json& json, std::string where) : json_(json), where_(std::move(where)) {
  TORCH_CHECK(json_.is_object(), where_, " is no JSON object");
}

const ConfigKeys::Json* ConfigKeys::find(const std::string& key) {
  taken_.insert(key);
  const auto found = json_.find(key);
  return found == json_.end() || found->is_null() ? nullptr : &*found;
}

void ConfigKeys::refuse(const std::string& key, const std::string& expected, const std::string& next) const {
  const auto found = json_.find(key);
  C10_THROW_ERROR(Error, c10::str(where_, ": ", key, found == json_.end() ? " is missing" : " is " + shown(*found),
                                  "; expected ", expected, next.empty() ? "" : "; " + next));
}

std::int64_t ConfigKeys::integer(const std::string& key, std::int64_t least, std::int64_t most,
                                 std::optional<std::int64_t> otherwise) {
  const auto* value = find(key);
  if (!value && otherwise) return *otherwise;
  const auto expected = "a whole number from " + std::to_string(least) + " to " + std::to_string(most);
  if (!value || !value->is_number_integer() ||
      (value->is_number_unsigned() && value->get<std::uint64_t>() > static_cast<std::uint64_t>(kMost)))
    refuse(key, expected);
  const auto number = value->get<std::int64_t>();
  if (number < least || number > most) refuse(key, expected);
  return number;
}

double ConfigKeys::number(const std::string& key, double least, double most, std::optional<double> otherwise) {
  const auto* value = find(key);
  if (!value && otherwise) return *otherwise;
  const auto expected = c10::str("a number from ", least, " to ", most);
  if (!value || !value->is_number()) refuse(key, expected);
  const auto result = value->get<double>();
  if (!(result >= least && result <= most)) refuse(key, expected);  // NaN is refused too
  return result;
}

bool ConfigKeys::flag(const std::string& key, bool otherwise) {
  const auto* value = find(key);
  if (!value) return otherwise;
  if (!value->is_boolean()) refuse(key, "true or false");
  return value->get<bool>();
}

std::string ConfigKeys::text(const std::string& key, const std::string& otherwise) {
  const auto* value = find(key);
  if (!value) return otherwise;
  if (!value->is_string() || value->get_ref<const std::string&>().size() > 200) refuse(key, "a short text");
  return value->get<std::string>();
}

void ConfigKeys::check_all_taken() const {
  for (const auto& [key, value] : json_.items()) {
    TORCH_CHECK(taken_.contains(key) || value.is_null(), where_, ": ", safetensors::detail::in_quotes(key), " is ",
                shown(value), ", which this program does not know and which may change what the model computes; ",
                "remove the key if it does not, or train this model elsewhere");
  }
}

}  // namespace sealift::trainer
