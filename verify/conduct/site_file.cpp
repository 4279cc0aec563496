// SPDX-License-Identifier: Apache-2.0
// site.toml as JSON.
// See site_file.hpp.
// Only what JSON can say: a date is refused.
#include "verify/conduct/site_file.hpp"

#include "sealift/toml.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace sealift::verify {
namespace {

using Json = nlohmann::json;

enum class Kind { Text, Texts, Flag, Whole, Number, Seconds, VersionOfBundle, Numbers, Settings };

/// What a check reads, by its table. Settings and numbers of a table have names of their own, which their check knows.
const std::map<std::string, std::map<std::string, Kind>> kTables{
    {"installation",
     {{"name", Kind::Text},
      {"version", Kind::VersionOfBundle},
      {"identity", Kind::Text},
      {"sbom", Kind::Text},
      {"installer", Kind::Text}}},
    {"machine",
     {{"driver", Kind::Text},
      {"gpus", Kind::Whole},
      {"nvlinks", Kind::Whole},
      {"shm_mib", Kind::Number},
      {"shm_free_mib", Kind::Number},
      {"free_gib", Kind::Number},
      {"ib_ports", Kind::Whole},
      {"gpudirect", Kind::Flag},
      {"memory_bandwidth_gb", Kind::Number},
      {"clock_skew_seconds", Kind::Number},
      {"mixed", Kind::Flag}}},
    {"arithmetic", {{"burn_seconds", Kind::Seconds}, {"at_least", Kind::Numbers}}},
    {"communication", {{"burn_seconds", Kind::Seconds}, {"at_least_gb", Kind::Numbers}}},
    {"training",
     {{"precision", Kind::Text},
      {"tolerance", Kind::Number},
      {"method", Kind::Text},
      {"shared_folder", Kind::Text},
      {"settings", Kind::Settings}}},
    {"egress", {{"imports", Kind::Texts}, {"allowed", Kind::Texts}}}};

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

bool is_number(const Json& value, double least) {
  return value.is_number() && std::isfinite(value.get<double>()) && value.get<double>() >= least;
}

template <class Holds>
bool all_of(const Json& values, Holds holds) {
  return std::all_of(values.begin(), values.end(), holds);
}

/// What is expected instead; empty: `value` is of its kind. No number and infinity would make every figure good or
/// none.
std::string instead_of(const Json& value, Kind kind) {
  const auto is_text = [](const Json& one) { return one.is_string() && !one.get<std::string>().empty(); };
  switch (kind) {
    case Kind::Text:
      return is_text(value) ? "" : "a text";
    case Kind::Texts:
      return value.is_array() && all_of(value, is_text) ? "" : "a list of texts";
    case Kind::Flag:
      return value.is_boolean() ? "" : "true or false";
    case Kind::Whole:
      return value.is_number_integer() && value >= 0 ? "" : "a whole number from 0";
    case Kind::Number:
      return is_number(value, 0) ? "" : "a number from 0";
    case Kind::Seconds:
      return is_number(value, 1) ? "" : "a number of seconds from 1";
    case Kind::VersionOfBundle:
      return is_text(value) || (value.is_number_integer() && value >= 0) ? "" : "a text or a whole number";
    case Kind::Numbers:
      return value.is_object() && all_of(value, [](const Json& one) { return is_number(one, 0); })
                 ? ""
                 : "a table of numbers from 0";
    case Kind::Settings:
      return value.is_object() ? "" : "a table";
  }
  return "";
}

void check_table(const toml::node& node, const std::string& name, const std::string& path) {
  const auto* table = node.as_table();
  if (!table) throw std::invalid_argument(place(node, path) + ": " + name + " is no table; write [" + name + "]");
  const auto& known = kTables.at(name);
  for (const auto& [key, value] : *table) {
    const auto found = known.find(std::string(key.str()));
    if (found == known.end()) {
      std::string all;
      for (const auto& [each, kind] : known) all += (all.empty() ? "" : ", ") + each;
      throw std::invalid_argument(place(value, path) + ": no check reads \"" + std::string(key.str()) + "\" of [" +
                                  name + "]; known are " + all);
    }
    const auto instead = instead_of(json_of(value, path), found->second);
    if (instead.empty()) continue;
    throw std::invalid_argument(place(value, path) + ": " + name + "." + found->first + " is not " + instead);
  }
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
    if (key.str() == "name") {
      if (!instead_of(json_of(value, path), Kind::Text).empty())
        throw std::invalid_argument(place(value, path) + ": name is not a text");
      continue;
    }
    if (!kTables.contains(std::string(key.str())))
      throw std::invalid_argument(place(value, path) + ": no check reads \"" + std::string(key.str()) + "\"");
    check_table(value, std::string(key.str()), path);
  }
  return json_of(table, path);
}

}  // namespace sealift::verify
