// SPDX-License-Identifier: Apache-2.0
// How a setting's text becomes a value and back, and how a TOML file becomes texts.
// See settings.hpp. Only this file of the trainer reads TOML.
// A file's values keep their shape, so that a list is not taken for a text that looks like one.
#include "trainer/settings/settings.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <type_traits>

#include "bundle/core/text_parts.hpp"
#include "sealift/nearest.hpp"
#include "sealift/toml.hpp"
#include "trainer/settings/refuse.hpp"

namespace sealift::trainer {
namespace {

std::string replace(std::string text, char from, char to) {
  std::replace(text.begin(), text.end(), from, to);
  return text;
}

std::vector<std::string> items_of(const std::string& text) {
  auto items = bundle::split(text, kSeparator);
  if (items.back().empty()) items.pop_back();  // of no text, or behind a last separator
  return {items.begin(), items.end()};
}

template <class Value>
struct Inner {
  using type = Value;
  static constexpr bool is_optional = false;
};
template <class Value>
struct Inner<std::optional<Value>> {
  using type = Value;
  static constexpr bool is_optional = true;
};

/// The shortest text that reads back as `value`: a stream's six digits would be another number.
std::string number_text(double value) {
  std::array<char, 40> text{};
  for (int digits = 6; digits <= 17; ++digits) {
    std::snprintf(text.data(), text.size(), "%.*g", digits, value);
    if (std::strtod(text.data(), nullptr) == value) break;
  }
  return text.data();
}

/// The items of a TOML list of texts, as a flag would have them.
std::string list_text(const toml::array& list, const std::string& where) {
  std::string text;
  for (const auto& item : list) {
    const auto* value = item.as_string();
    if (!value) refuse(where + " is no list of texts");
    text += (text.empty() ? "" : std::string(1, kSeparator)) + value->get();
  }
  return text;
}

std::string value_text(const toml::node& node, const std::string& where) {
  std::ostringstream text;
  if (const auto* value = node.as_string()) {
    text << value->get();
  } else if (const auto* value = node.as_integer()) {
    text << value->get();
  } else if (const auto* value = node.as_floating_point()) {
    text << number_text(value->get());
  } else if (const auto* value = node.as_boolean()) {
    text << (value->get() ? "true" : "false");
  } else {
    refuse(where + " is neither text nor a number nor true or false");
  }
  return text.str();
}

}  // namespace

void assign(Field field, const std::string& name, const std::string& text, const std::string& source) {
  const auto expect = [&](bool holds, const char* expected) {
    if (!holds) refuse(name + " is '" + text + "' (" + source + "); expected " + expected);
  };
  const auto number = [&](auto& value, const char* expected) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = error == std::errc{} && end == text.data() + text.size();
    expect(whole && value >= 0 && std::isfinite(static_cast<double>(value)), expected);
  };
  const auto read = [&](auto& value) {
    using Value = std::remove_reference_t<decltype(value)>;
    if constexpr (std::is_same_v<Value, std::int64_t>) number(value, "a whole number, not negative");
    if constexpr (std::is_same_v<Value, double>) number(value, "a number, not negative");
    if constexpr (std::is_same_v<Value, bool>) {
      expect(text == "true" || text == "false", "true or false");
      value = text == "true";
    }
    if constexpr (std::is_same_v<Value, std::string>) value = text;
    if constexpr (std::is_same_v<Value, std::vector<std::string>>) value = items_of(text);
  };
  std::visit(
      [&](auto* target) {
        using Kind = Inner<std::remove_reference_t<decltype(*target)>>;
        if constexpr (Kind::is_optional) {
          typename Kind::type value{};
          if (!text.empty()) read(value);
          text.empty() ? target->reset() : void(*target = value);
        } else {
          read(*target);
        }
      },
      field);
}

std::string text_of(Field field) {
  std::ostringstream text;
  text << std::boolalpha;
  const auto write = [&](const auto& value) {
    using Value = std::remove_cvref_t<decltype(value)>;
    if constexpr (std::is_same_v<Value, std::vector<std::string>>) {
      for (const auto& item : value) text << (&item == &value.front() ? "" : std::string(1, kSeparator)) << item;
    } else if constexpr (std::is_same_v<Value, double>) {
      text << number_text(value);
    } else {
      text << value;
    }
  };
  std::visit(
      [&](auto* value) {
        if constexpr (Inner<std::remove_cvref_t<decltype(*value)>>::is_optional) {
          if (*value) write(**value);
        } else {
          write(*value);
        }
      },
      field);
  return text.str();
}

Texts read_toml(const std::string& path, const std::function<Shape(const std::string&)>& shape) {
  toml::table table;
  try {
    table = toml::parse_file(path);
  } catch (const toml::parse_error& error) {
    std::ostringstream where;
    where << path << ": " << error.description() << " (" << error.source().begin << ")";
    refuse(where.str());
  }
  Texts texts;
  for (const auto& [key, node] : table) {
    const std::string name(key.str());
    const auto where = path + ": " + name;
    const auto expected = shape(name);
    const auto* list = node.as_array();
    if (!list && expected == Shape::List) refuse(where + " is no list; write it as [\"one\", \"two\"]");
    texts[name] = list && expected != Shape::Value ? list_text(*list, where) : value_text(node, where);
  }
  return texts;
}

void refuse_key(const std::string& source, const std::string& name, const std::set<std::string>& known,
                const std::string& verb) {
  const auto near = nearest(name, known);
  throw std::invalid_argument(source + ": unknown key '" + name + "'" + (near.empty() ? "" : ", did you mean " + near) +
                              "; sealift-train " + verb + " --help lists the settings");
}

std::string flag_of(const std::string& name) {
  return "--" + replace(name, '_', '-');
}

std::string variable_of(const std::string& name) {
  std::string upper = "SEALIFT_TRAIN_" + name;
  std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return std::toupper(c); });
  return upper;
}

}  // namespace sealift::trainer
