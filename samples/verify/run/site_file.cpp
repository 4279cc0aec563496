// SPDX-License-Identifier: Apache-2.0
// site.toml as JSON.
// See site_file.hpp.
// Only what JSON can say: a date is refused.
#include "run/site_file.hpp"

#include "sealift/toml.hpp"

#include <algorithm>
#include <array>

namespace sealift::verify {
namespace {

using Json = nlohmann::json;

/// Top-level names that some check reads.
constexpr std::array kKnown{"name",   "installation", "machine", "communication", "training",
                            "egress", "golden",       "python",  "arithmetic"};

std::string place(const toml::node& node, const std::string& path) {
  return path + ":" + std::to_string(node.source().begin.line);
}

Json json_of(const toml::node& node, const std::string& path) {
  if (const auto* table = node.as_table()) {
    auto json = Json::object();
    for (const auto& [key, value] : *table) json[std::string(key.str())] = json_of(value, path);
    return json;
  }
  if (const auto* array = node.as_array()) {
    auto json = Json::array();
    for (const auto& value : *array) json.push_back(json_of(value, path));
    return json;
  }
  if (const auto* value = node.as_string()) return value->get();
  if (const auto* value = node.as_integer()) return value->get();
  if (const auto* value = node.as_floating_point()) return value->get();
  if (const auto* value = node.as_boolean()) return value->get();
  throw std::invalid_argument(place(node, path) + ": dates are not used here; write a text");
}

}  // namespace

Json read_site_file(const std::string& path) {
  toml::table table;
  try {
    table = toml::parse_file(path);
  } catch (const toml::parse_error& error) {
    throw std::invalid_argument(path + ":" + std::to_string(error.source().begin.line) + ": " +
                                std::string(error.description()));
  }
  for (const auto& [key, value] : table) {
    if (std::find(kKnown.begin(), kKnown.end(), key.str()) == kKnown.end()) {
      throw std::invalid_argument(place(value, path) + ": no check reads \"" + std::string(key.str()) + "\"");
    }
  }
  return json_of(table, path);
}

}  // namespace sealift::verify
