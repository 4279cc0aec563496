// SPDX-License-Identifier: Apache-2.0
// See settings_file.hpp.
#include "trainer/settings/settings_file.hpp"

#include "trainer/settings/refuse.hpp"

#include <nlohmann/json.hpp>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace sealift::trainer {
namespace {

std::string text_of(const nlohmann::json& value) {
  if (value.is_null()) return "";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float() && std::abs(value.get<double>()) < 1e15 && std::trunc(value.get<double>()) == value) {
    return std::to_string(value.get<std::int64_t>());  // transformers writes numbers of steps as 100.0
  }
  if (!value.is_array()) return value.is_object() && value.empty() ? "" : value.dump();
  std::string text;
  for (const auto& item : value) text += (text.empty() ? "" : std::string(1, kSeparator)) + text_of(item);
  return text;
}

std::string content_of(const std::string& path) {
  constexpr std::size_t kMost = 16 << 20;
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse("cannot read " + path);
  std::ostringstream text;
  text << file.rdbuf();
  if (text.str().size() > kMost) refuse(path + " has more than 16 MiB; it is no settings file");
  return text.str();
}

Texts read_json(const std::string& path) {
  nlohmann::json json;
  try {
    json = nlohmann::json::parse(content_of(path));
  } catch (const nlohmann::json::exception& error) {
    refuse(path + ": " + error.what());
  }
  if (!json.is_object()) refuse(path + " is no JSON object; give ms-swift's args.json, or settings by name");
  Texts texts;
  for (const auto& [key, value] : json.items()) {
    if (auto text = text_of(value); !text.empty()) texts[key] = std::move(text);
  }
  return texts;
}

std::string trimmed(const std::string& text) {
  const auto begin = text.find_first_not_of(" \t\r");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

/// A YAML scalar without its quotes and comment; an empty text for null.
std::string scalar(const std::string& raw, const std::string& where) {
  auto text = trimmed(raw);
  if (!text.empty() && (text[0] == '"' || text[0] == '\'')) {
    const auto end = text.find(text[0], 1);
    const auto rest = end == std::string::npos ? "?" : trimmed(text.substr(end + 1));
    if (end == std::string::npos || (!rest.empty() && rest[0] != '#') ||
        text.substr(0, end).find('\\') != std::string::npos) {
      refuse(where + ": a text in quotes must end on its line and have no backslash");
    }
    return text.substr(1, end - 1);
  }
  if (const auto comment = text.find(" #"); comment != std::string::npos) text = trimmed(text.substr(0, comment));
  if (text.starts_with("#")) return "";
  if (!text.empty() && std::string("[{&*!|>%@`").find(text[0]) != std::string::npos) {
    refuse(where + ": '" + text + "' is more than a value; write key: value, or a list of values");
  }
  if (text == "null" || text == "~" || text == "None") return "";
  if (text == "True" || text == "yes" || text == "on") return "true";
  if (text == "False" || text == "no" || text == "off") return "false";
  return text;
}

/// [a, b] in one line.
std::string flow_list(const std::string& text, const std::string& where) {
  const auto end = text.find(']');
  const auto rest = end == std::string::npos ? "?" : trimmed(text.substr(end + 1));
  if (end == std::string::npos || (!rest.empty() && rest[0] != '#')) refuse(where + ": a list must end on its line");
  std::istringstream items(text.substr(1, end - 1));
  std::string joined;
  for (std::string item; std::getline(items, item, ',');) {
    joined += (joined.empty() ? "" : std::string(1, kSeparator)) + scalar(item, where);
  }
  return joined;
}

/// Keys with a value or a list of values: what ms-swift's own examples use of YAML.
Texts read_yaml(const std::string& path) {
  std::istringstream lines(content_of(path));
  Texts texts;
  std::string key;  // of the list that the next lines may add to
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto where = path + ": line " + std::to_string(++number);
    const auto text = trimmed(line);
    if (text.empty() || text[0] == '#' || text == "---") continue;
    if (text.starts_with("- ") && !key.empty()) {
      auto& list = texts[key];
      list += (list.empty() ? "" : std::string(1, kSeparator)) + scalar(text.substr(2), where);
      continue;
    }
    const auto colon = text.find(':');
    const bool is_key = colon != std::string::npos && (colon + 1 == text.size() || text[colon + 1] == ' ');
    if (line[0] == ' ' || line[0] == '\t' || !is_key) {
      refuse(where + ": '" + text + "' is no 'key: value'; nested YAML is not read");
    }
    key = trimmed(text.substr(0, colon));
    const auto value = trimmed(text.substr(colon + 1));
    if (texts.contains(key)) refuse(where + ": " + key + " is there twice");
    texts[key] = value.starts_with("[") ? flow_list(value, where) : scalar(value, where);
    if (!texts[key].empty()) key.clear();
  }
  std::erase_if(texts, [](const auto& each) { return each.second.empty(); });
  return texts;
}

}  // namespace

Texts read_config(const std::string& path) {
  const auto ending = std::filesystem::path(path).extension();
  if (ending == ".json") return read_json(path);
  if (ending == ".yaml" || ending == ".yml") return read_yaml(path);
  return read_toml(path, [](const auto&) { return Shape::Either; });
}

}  // namespace sealift::trainer
