// SPDX-License-Identifier: Apache-2.0
// See settings_file.hpp.
#include "trainer/settings/settings_file.hpp"

#include "bundle/core/yaml.hpp"
#include "sealift/bundle/core/error.hpp"
#include "sealift/strict_json.hpp"
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
    json = parse_strict_json(content_of(path), {.integers_only = false});
  } catch (const StrictJsonError& error) {
    refuse(path + ": " + error.what() + (error.got().empty() ? "" : ": " + error.got()));
  }
  if (!json.is_object()) refuse(path + " is no JSON object; give ms-swift's args.json, or settings by name");
  Texts texts;
  for (const auto& [key, value] : json.items()) {
    if (auto text = text_of(value); !text.empty()) texts[key] = std::move(text);
  }
  return texts;
}

/// A YAML value, or a list of them; an empty text for null.
std::string text_of(const bundle::YamlNode& node, const std::string& where) {
  using Kind = bundle::YamlNode::Kind;
  if (node.kind == Kind::Null) return "";
  std::string text;
  for (const auto& item : node.items) {
    const bool is_value = item.kind == Kind::Null || item.kind == Kind::Text;
    if (!is_value) refuse(where + " is more than a list of values");
    text += (text.empty() ? "" : std::string(1, kSeparator)) + text_of(item, where);
  }
  if (node.kind == Kind::List) return text;
  if (node.kind != Kind::Text) refuse(where + " is more than a value; write key: value, or a list of values");
  if (node.quoted) return node.text;
  if (node.text == "None") return "";
  if (node.text == "True" || node.text == "yes" || node.text == "on") return "true";
  if (node.text == "False" || node.text == "no" || node.text == "off") return "false";
  return node.text;
}

bundle::YamlNode parsed_yaml(const std::string& path) {
  try {
    return bundle::parse_yaml(content_of(path), path);
  } catch (const bundle::Error& error) {
    const auto& facts = error.facts();
    refuse(facts.where + ": " + facts.what + (facts.got.empty() ? "" : ": " + facts.got));
  }
}

/// Keys with a value or a list of values, as ms-swift and LLaMA-Factory have them.
Texts read_yaml(const std::string& path) {
  const auto root = parsed_yaml(path);
  if (root.kind != bundle::YamlNode::Kind::Map && root.kind != bundle::YamlNode::Kind::Null) {
    refuse(path + ": line " + std::to_string(root.line) + ": it is no 'key: value'");
  }
  Texts texts;
  for (const auto& [key, value] : root.members) {
    const auto text = text_of(value, path + ": line " + std::to_string(value.line) + ": " + key);
    if (!text.empty()) texts[key] = text;
  }
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
