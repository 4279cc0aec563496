// SPDX-License-Identifier: Apache-2.0
// One table names a job's settings; a flag, the environment, a file and a preset give their texts.
// Below the options of each verb: text in, fields of a plain struct out. No LibTorch.
// A value is text until the table gives its type, so all sources get the same checks and the same messages.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

namespace sealift::trainer {

/// Whether a setting changes the numbers, or only the way to compute them.
enum class Changes { Numbers, Way };

/// Text by setting name, as flags, variables and files give it.
using Texts = std::map<std::string, std::string>;

/// What separates the items of a list in a text.
inline constexpr char kSeparator = ',';

/// The field of an options struct that a setting fills.
using Field = std::variant<std::int64_t*, double*, bool*, std::optional<bool>*, std::optional<std::int64_t>*,
                           std::optional<double>*, std::string*, std::vector<std::string>*>;

/// One setting of `Options`: `name` in a file, `--name` with dashes as a flag, `SEALIFT_TRAIN_NAME` in the environment.
template <class Options>
struct SettingOf {
  Changes changes;
  std::string name;
  std::string help;
  std::variant<std::int64_t Options::*, double Options::*, bool Options::*, std::optional<bool> Options::*,
               std::optional<std::int64_t> Options::*, std::optional<double> Options::*, std::string Options::*,
               std::vector<std::string> Options::*>
      field;

  std::string flag() const;
  std::string variable() const;

  Field of(Options& options) const {
    return std::visit([&](auto member) -> Field { return &(options.*member); }, field);
  }
};

std::string flag_of(const std::string& name);
std::string variable_of(const std::string& name);

template <class Options>
std::string SettingOf<Options>::flag() const {
  return flag_of(name);
}
template <class Options>
std::string SettingOf<Options>::variable() const {
  return variable_of(name);
}

/// Sets `field` from `text`; throws std::invalid_argument with the setting's `name` and `source`, where the text was
/// written. An empty text unsets an optional.
void assign(Field field, const std::string& name, const std::string& text, const std::string& source);

/// What `assign` would read back; empty for an optional that is unset.
std::string text_of(Field field);

/// What a file may hold for a key: one value, a list of texts, or either.
enum class Shape { Value, List, Either };

/// The keys of the TOML file `path`, lists as texts. Throws std::invalid_argument with the place of a fault, and where
/// a key's value has not the shape that `shape` says.
Texts read_toml(const std::string& path, const std::function<Shape(const std::string& name)>& shape);

/// Texts of one file, for the messages with its path.
struct Layer {
  std::string source;
  Texts texts;
};

/// Flag over environment over the layers, of which an earlier one is stronger, over what `options` has.
template <class Options>
void read_settings(Options& options, const std::vector<SettingOf<Options>>& table, const Texts& flags,
                   const std::vector<Layer>& layers) {
  for (const auto& setting : table) {
    const auto field = setting.of(options);
    const char* variable = std::getenv(setting.variable().c_str());
    if (const auto flag = flags.find(setting.name); flag != flags.end()) {
      assign(field, setting.name, flag->second, setting.flag());
      continue;
    }
    if (variable) {
      assign(field, setting.name, variable, setting.variable());
      continue;
    }
    for (const auto& layer : layers) {
      const auto entry = layer.texts.find(setting.name);
      if (entry == layer.texts.end()) continue;
      assign(field, setting.name, entry->second, layer.source);
      break;
    }
  }
}

/// The shape of the setting `name` of `table`; `Either` for one that it has not.
template <class Options>
Shape shape_of(const std::vector<SettingOf<Options>>& table, const std::string& name) {
  for (const auto& setting : table) {
    if (setting.name != name) continue;
    const bool is_list = std::holds_alternative<std::vector<std::string> Options::*>(setting.field);
    return is_list ? Shape::List : Shape::Value;
  }
  return Shape::Either;
}

/// Throws std::invalid_argument: `source` has `name`, which `known` lacks; with its nearest name there.
[[noreturn]] void refuse_key(const std::string& source, const std::string& name, const std::set<std::string>& known,
                             const std::string& verb);

/// Throws std::invalid_argument unless `table` has every key of `layer`; `verb` is named as the place of the list.
template <class Options>
void refuse_unknown(const std::vector<SettingOf<Options>>& table, const Layer& layer, const std::string& verb) {
  for (const auto& [name, text] : layer.texts) {
    const auto known = [&, &key = name](const auto& setting) { return setting.name == key; };
    if (std::any_of(table.begin(), table.end(), known)) continue;
    std::set<std::string> names;
    for (const auto& setting : table) names.insert(setting.name);
    refuse_key(layer.source, name, names, verb);
  }
}

/// The settings of `table` that change the numbers, as text by name.
template <class Options>
Texts comparable_settings(Options options, const std::vector<SettingOf<Options>>& table) {
  Texts texts;
  for (const auto& setting : table) {
    if (setting.changes == Changes::Numbers) texts[setting.name] = text_of(setting.of(options));
  }
  return texts;
}

}  // namespace sealift::trainer
