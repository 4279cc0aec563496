// SPDX-License-Identifier: Apache-2.0
// See settings_file.hpp.
#include "trainer/settings/settings_file.hpp"

#include "bundle/core/yaml.hpp"
#include "sealift/bundle/core/error.hpp"
#include "sealift/strict_json.hpp"
#include "trainer/settings/refuse.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
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

/// Keys whose value is a tree of keys: axolotl's and TRL's data sets are lists of maps, datasets.00.path ...
bool is_flattened(const std::string& key) {
  static const std::set<std::string> keys = {"datasets", "test_datasets", "special_tokens"};
  return keys.contains(key);
}

/// Keys of projects that may have a tree as their value, whose text is its JSON.
bool is_tree(const std::string& key) {
  static const std::set<std::string> keys = {"pretraining_dataset",
                                             "trl",
                                             "vllm",
                                             "peft",
                                             "qat",
                                             "quantization",
                                             "ebft",
                                             "dynamic_checkpoint",
                                             "lr_groups",
                                             "rope_scaling",
                                             "gptq",
                                             "optim_args",
                                             "accelerator_config",
                                             "role_boundaries",
                                             "max_memory",
                                             "plugins",
                                             "deepspeed",
                                             "fsdp",
                                             "model_config",
                                             "tokenizer_config"};
  return key.ends_with("_kwargs") || key.ends_with("_config") || key.starts_with("overrides_of_model") ||
         key.starts_with("added_tokens_") || key.ends_with("_overrides") || keys.contains(key);
}

void flatten(const nlohmann::json& value, const std::string& name, Texts& texts) {
  const auto is_map = [](const auto& item) { return item.is_object(); };
  if (value.is_object()) {
    for (const auto& [key, item] : value.items()) flatten(item, name + "." + key, texts);
  } else if (value.is_array() && std::any_of(value.begin(), value.end(), is_map)) {
    for (std::size_t at = 0; at < value.size(); ++at) {
      flatten(value[at], name + "." + (at < 10 ? "0" : "") + std::to_string(at), texts);
    }
  } else if (auto text = text_of(value); !text.empty()) {
    texts[name] = std::move(text);
  }
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
    if (is_flattened(key)) {
      flatten(value, key, texts);
      continue;
    }
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

/// A tree as JSON text; what a reader of such a key does with it is its own.
nlohmann::json json_of(const bundle::YamlNode& node, const std::string& where) {
  using Kind = bundle::YamlNode::Kind;
  if (node.kind == Kind::Map) {
    auto json = nlohmann::json::object();
    for (const auto& [key, value] : node.members) json[key] = json_of(value, where);
    return json;
  }
  if (node.kind == Kind::List) {
    auto json = nlohmann::json::array();
    for (const auto& item : node.items) json.push_back(json_of(item, where));
    return json;
  }
  if (node.kind == Kind::Null) return nullptr;
  const auto text = text_of(node, where);
  const auto value = nlohmann::json::parse(node.quoted ? "" : text, nullptr, /*allow_exceptions=*/false);
  return value.is_number() || value.is_boolean() ? value : nlohmann::json(text);
}

/// Keys with a value or a list of values, as ms-swift and LLaMA-Factory have them; of a few keys more.
Texts read_yaml(const std::string& path) {
  const auto root = parsed_yaml(path);
  if (root.kind != bundle::YamlNode::Kind::Map && root.kind != bundle::YamlNode::Kind::Null) {
    refuse(path + ": line " + std::to_string(root.line) + ": it is no 'key: value'");
  }
  using Kind = bundle::YamlNode::Kind;
  Texts texts;
  for (const auto& [key, value] : root.members) {
    const auto where = path + ": line " + std::to_string(value.line) + ": " + key;
    if (is_flattened(key)) {
      flatten(json_of(value, where), key, texts);
      continue;
    }
    const bool has_map =
        std::any_of(value.items.begin(), value.items.end(), [](const auto& item) { return item.kind == Kind::Map; });
    const bool as_json = is_tree(key) && (value.kind == Kind::Map || has_map);
    const auto text = as_json ? json_of(value, where).dump() : text_of(value, where);
    if (!text.empty() && text != "{}") texts[key] = text;
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
