// SPDX-License-Identifier: Apache-2.0
// Reads TOML; see toml_file.hpp. The values of toml++ are copied into TomlValue, so that one source pays for its
// headers.
#include "packager/tables/toml_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "sealift/bundle/core/fields.hpp"
#include "sealift/bundle/core/file.hpp"
#include "sealift/nearest.hpp"
#include "sealift/toml.hpp"

namespace sealift::packager {

using bundle::Error;
using bundle::ErrorCode;

namespace {

constexpr std::uint64_t kMaxToml = std::uint64_t{64} << 20;

std::string day_text(const toml::date& date) {
  return fmt::format("{:04}-{:02}-{:02}", date.year, unsigned{date.month}, unsigned{date.day});
}

TomlValue copy(const toml::node& node) {
  TomlValue value;
  value.line = node.source().begin.line;
  if (const auto* table = node.as_table()) {
    for (const auto& [key, member] : *table) value.members.emplace(std::string(key.str()), copy(member));
  } else if (const auto* array = node.as_array()) {
    value.kind = TomlValue::Kind::Array;
    for (const toml::node& item : *array) value.items.push_back(copy(item));
  } else if (const auto* string = node.as_string()) {
    value.kind = TomlValue::Kind::String;
    value.text = string->get();
  } else if (const auto* integer = node.as_integer()) {
    value.kind = TomlValue::Kind::Integer;
    value.integer = integer->get();
  } else if (const auto* boolean = node.as_boolean()) {
    value.kind = TomlValue::Kind::Boolean;
    value.boolean = boolean->get();
  } else {
    value.kind = TomlValue::Kind::Other;
    if (const auto* time = node.as_date_time()) value.text = day_text(time->get().date);
    if (const auto* date = node.as_date()) value.text = day_text(date->get());
  }
  return value;
}

std::string describe(const TomlValue& value) {
  switch (value.kind) {
    case TomlValue::Kind::String:
      return toml_quoted(value.text);
    case TomlValue::Kind::Integer:
      return std::to_string(value.integer);
    case TomlValue::Kind::Boolean:
      return value.boolean ? "true" : "false";
    case TomlValue::Kind::Array:
      return "an array";
    case TomlValue::Kind::Table:
      return "a table";
    case TomlValue::Kind::Other:
      return "a date or a float";
  }
  return "?";
}

}  // namespace

TomlValue parse_toml(std::string_view text, const std::filesystem::path& where, ErrorCode fault) {
  try {
    return copy(toml::parse(text));
  } catch (const toml::parse_error& error) {
    throw Error(fault, {.what = "this is not valid TOML",
                        .where = fmt::format("{}, line {}", where.string(), error.source().begin.line),
                        .got = std::string(error.description())});
  }
}

TomlValue read_toml(const std::filesystem::path& path, ErrorCode fault) {
  return parse_toml(bundle::read_text(path, kMaxToml), path, fault);
}

std::string toml_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      out.append({'\\', c});
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      out += fmt::format("\\u{:04X}", static_cast<unsigned>(c));
    else
      out.push_back(c);
  }
  return out + "\"";
}

TomlTable::TomlTable(const TomlValue& value, std::filesystem::path file, ErrorCode fault, std::string name)
    : value_(&value), file_(std::move(file)), fault_(fault), name_(std::move(name)) {}

const TomlValue& TomlTable::at(const std::string& key, TomlValue::Kind kind, const char* expected) {
  asked_.insert(key);
  const auto found = value_->members.find(key);
  if (found == value_->members.end()) refuse_missing(key, "a key is missing", expected);
  seen_.insert(key);
  if (found->second.kind != kind) refuse(key, "a value is of the wrong kind", expected, describe(found->second));
  return found->second;
}

std::vector<std::string> TomlTable::keys() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : value_->members) names.push_back(name);
  return names;
}

std::string TomlTable::string(const std::string& key) {
  return at(key, TomlValue::Kind::String, "a string").text;
}
std::string TomlTable::string_or(const std::string& key, std::string otherwise) {
  return has(key) ? string(key) : std::move(otherwise);
}
std::string TomlTable::day(const std::string& key) {
  return has(key) && value_->members.at(key).kind == TomlValue::Kind::Other ? value_->members.at(key).text : "";
}
std::string TomlTable::plain_name(const std::string& key) {
  std::string text = string(key);
  if (!bundle::is_plain_name(text))
    refuse(key, "a name is not plain", "a letter or digit, then letters, digits, '.', '_' or '-'", text);
  return text;
}
std::uint64_t TomlTable::integer(const std::string& key) {
  const std::int64_t number = at(key, TomlValue::Kind::Integer, "a whole number").integer;
  if (number < 0) refuse(key, "a number is negative", "0 or more", std::to_string(number));
  return static_cast<std::uint64_t>(number);
}
std::uint64_t TomlTable::integer_or(const std::string& key, std::uint64_t otherwise) {
  return has(key) ? integer(key) : otherwise;
}
bool TomlTable::boolean_or(const std::string& key, bool otherwise) {
  return has(key) ? at(key, TomlValue::Kind::Boolean, "true or false").boolean : otherwise;
}

std::vector<std::string> TomlTable::strings(const std::string& key) {
  std::vector<std::string> out;
  if (!has(key)) return out;
  for (const TomlValue& item : at(key, TomlValue::Kind::Array, "an array of strings").items) {
    if (item.kind != TomlValue::Kind::String)
      refuse(key, "a value is of the wrong kind", "an array of strings", describe(item));
    out.push_back(item.text);
  }
  return out;
}

TomlTable TomlTable::table(const std::string& key) {
  return {at(key, TomlValue::Kind::Table, "a table"), file_, fault_, name_.empty() ? key : name_ + "." + key};
}

std::vector<TomlTable> TomlTable::tables(const std::string& key) {
  std::vector<TomlTable> out;
  if (!has(key)) return out;
  for (const TomlValue& item : at(key, TomlValue::Kind::Array, "an array of tables").items) {
    if (item.kind != TomlValue::Kind::Table)
      refuse(key, "a value is of the wrong kind", "an array of tables", describe(item));
    out.emplace_back(item, file_, fault_, name_.empty() ? key : name_ + "." + key);
  }
  return out;
}

void TomlTable::each(const std::string& key, const std::function<void(TomlTable&)>& read) {
  Refusals faults;
  for (TomlTable& item : tables(key)) faults.ask([&] { read(item); });
  refuse_all(faults);
}

void TomlTable::refuse_all(const Refusals& faults) const {
  faults.refuse("things in " + file_.string() + " are not right", "correct each of them");
}

void TomlTable::done() const {
  Refusals faults = faults_;
  for (const auto& [key, value] : value_->members) {
    if (ignore_others_ || seen_.contains(key)) continue;
    const std::string near = nearest(key, asked_);
    faults.ask([&, &name = key] {
      refuse(name, "a key is not known", near.empty() ? "" : "'" + near + "' perhaps", {},
             "correct its spelling or remove it");
    });
  }
  refuse_all(faults);
}

void TomlTable::refuse_missing(const std::string& key, std::string what, std::string expected) const {
  std::set<std::string> others;
  for (const auto& [other, value] : value_->members)
    if (!asked_.contains(other)) others.insert(other);
  const std::string near = nearest(key, others);
  if (near.empty()) {
    refuse_mistyped_option();
    refuse(key, std::move(what), std::move(expected));
  }
  refuse(near, "a key is not known", "'" + key + "' perhaps, which is missing", {}, "correct its spelling");
}

// A mistyped `profile` is why `arch` is missing, and what has to be said.
void TomlTable::refuse_mistyped_option() const {
  std::set<std::string> absent;
  for (const std::string& key : asked_)
    if (!value_->members.contains(key)) absent.insert(key);
  for (const auto& [other, value] : value_->members)
    if (const std::string near = nearest(other, absent); !asked_.contains(other) && !near.empty())
      refuse(other, "a key is not known", "'" + near + "' perhaps", {}, "correct its spelling or remove it");
}

void TomlTable::refuse(const std::string& key, std::string what, std::string expected, std::string got,
                       std::string next) const {
  const auto found = value_->members.find(key);
  const unsigned line = found == value_->members.end() ? value_->line : found->second.line;
  throw Error(fault_, {.what = std::move(what),
                       .where = fmt::format("{}, line {}, key '{}{}{}'", file_.string(), line, name_,
                                            name_.empty() ? "" : ".", key),
                       .expected = std::move(expected),
                       .got = std::move(got),
                       .next = std::move(next)});
}

}  // namespace sealift::packager
