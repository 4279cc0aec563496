// SPDX-License-Identifier: Apache-2.0
// TOML as a value with line numbers: job file, lock and pylock are read through it, and only toml_file.cpp sees toml++.
// Reading field by field makes every message name file, line and key, and refuses keys that were not read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "packager/host/refusals.hpp"
#include "sealift/bundle/core/error.hpp"

namespace sealift::packager {

struct TomlValue {
  enum class Kind { String, Integer, Boolean, Array, Table, Other };

  Kind kind = Kind::Table;
  unsigned line = 0;
  std::string text;  // of a String; of a date, "2026-01-31"
  std::int64_t integer = 0;
  bool boolean = false;
  std::vector<TomlValue> items;              // of an Array
  std::map<std::string, TomlValue> members;  // of a Table
};

// Throws `fault` (Usage for files of people, Format for files of programs) when the text does not parse.
TomlValue parse_toml(std::string_view text, const std::filesystem::path& where, bundle::ErrorCode fault);
TomlValue read_toml(const std::filesystem::path& path, bundle::ErrorCode fault);

// The text as a TOML basic string, with its quotes.
std::string toml_quoted(std::string_view text);

// One table of a document. Keys that are read are remembered; done() refuses the others by name, and names the known
// key that each is nearest to.
class TomlTable {
 public:
  TomlTable(const TomlValue& value, std::filesystem::path file, bundle::ErrorCode fault, std::string name = {});

  bool has(const std::string& key) const {
    asked_.insert(key);
    return value_->members.contains(key);
  }
  bool is_array(const std::string& key) const {
    return has(key) && value_->members.at(key).kind == TomlValue::Kind::Array;
  }
  bool is_table(const std::string& key) const {
    return has(key) && value_->members.at(key).kind == TomlValue::Kind::Table;
  }
  bool is_boolean(const std::string& key) const {
    return has(key) && value_->members.at(key).kind == TomlValue::Kind::Boolean;
  }
  std::vector<std::string> keys() const;  // of a table whose keys are the writer's choice
  std::string string(const std::string& key);
  std::string string_or(const std::string& key, std::string otherwise);
  std::string day(const std::string& key);         // "2026-01-31" of a date or time; empty where there is none
  std::string plain_name(const std::string& key);  // a string that can be part of a file's name
  std::uint64_t integer(const std::string& key);
  std::uint64_t integer_or(const std::string& key, std::uint64_t otherwise);
  bool boolean_or(const std::string& key, bool otherwise);
  std::vector<std::string> strings(const std::string& key);  // empty when the key is not there
  TomlTable table(const std::string& key);
  std::vector<TomlTable> tables(const std::string& key);  // empty when the key is not there

  // Calls `read`, which reads one value, and keeps its refusal for done(): a table with three wrong values is told of
  // three at once. Its user calls done().
  void attempt(const std::function<void()>& read) { faults_.ask(read); }
  // Nothing was kept, so values can be compared with each other.
  bool is_good() const { return !faults_.any(); }

  // Reads each table of an array, whatever is wrong with the others, and throws what they refuse.
  void each(const std::string& key, const std::function<void(TomlTable&)>& read);

  void ignore(const std::string& key) { seen_.insert(key); }
  void ignore_others() { ignore_others_ = true; }
  // Throws what was kept, and the keys that nobody asked for, in one message.
  void done() const;

  // Throws the document's fault, naming file, line and key.
  [[noreturn]] void refuse(const std::string& key, std::string what, std::string expected = {}, std::string got = {},
                           std::string next = {}) const;
  // The same for a key that is not there; if another key looks like it mistyped, that one is named instead.
  [[noreturn]] void refuse_missing(const std::string& key, std::string what, std::string expected = {}) const;

 private:
  void refuse_mistyped_option() const;
  void refuse_all(const Refusals& faults) const;
  const TomlValue& at(const std::string& key, TomlValue::Kind kind, const char* expected);

  const TomlValue* value_;
  std::filesystem::path file_;
  bundle::ErrorCode fault_;
  std::string name_;
  Refusals faults_;
  std::set<std::string> seen_;
  mutable std::set<std::string> asked_;  // whether they are there or not
  bool ignore_others_ = false;
};

}  // namespace sealift::packager
