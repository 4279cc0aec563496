// SPDX-License-Identifier: Apache-2.0
// A program's command line: its verbs, what each accepts, and the only place that catches errors. The tools' mains and
// their verbs/ stand on it. CLI11 stays behind it, in one source, since every file that includes CLI11 costs seconds.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bundle/core/json.hpp"
#include "sealift/bundle/core/error.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace sealift::bundle {

// More about an option or a positional argument that was just declared.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option required(bool required = true) const;
  Option repeated() const;  // one value after each mention: --onto A --onto B
  Option listed() const;    // "a,b" are two values
  Option show_default() const;
  template <class Number>
  Option between(Number low, Number high) const;  // int, unsigned or double
  Option positive() const;
  Option existing() const;  // a path that is there
  Option bytes() const;     // "80GB" too, in powers of 1024
  Option excludes(const Option& other) const;
  Option one_of(const std::vector<std::string>& words) const;

 private:
  CLI::Option* option_;
};

// What a verb accepts and does. Values are written before the action runs, so they must live as long as the program:
// a verb keeps them in a shared struct that its action holds.
class Verb {
 public:
  Verb verb(const std::string& name, const std::string& what) const;  // `trust add` below `trust`
  void alias(const std::string& name) const;

  // "-o,--output" is an option, "BUNDLE" a positional argument; a vector takes one value or more.
  // Values are texts, paths, numbers (unsigned, 64 bits, double) and std::optional<bool>.
  template <class Value>
  Option option(const std::string& names, Value& value, const std::string& what) const;
  // Each text that is given goes to `take`: for settings that a table lists.
  Option setting(const std::string& names, std::function<void(const std::string&)> take, const std::string& what) const;
  void flag(const std::string& names, bool& value, const std::string& what) const;
  void json(bool& value) const;  // --json; errors are then printed on stdout too

  // Words that no option takes go to `words`, in their order. With `helps` false --help is one of them.
  void others(std::vector<std::string>& words, bool helps = true) const;
  // Stands at the end of --help; asked for when that is.
  void footer(std::function<std::string()> text) const;

  // Returns the exit code, or throws.
  void action(std::function<int()> run) const;

 private:
  friend class Program;
  Verb(CLI::App& app, int& exit_code) : app_(&app), exit_code_(&exit_code) {}

  CLI::App* app_;
  int* exit_code_;
};

// Has --help, --version ("NAME VERSION") and verbs, of which one must be given.
class Program {
 public:
  Program(const std::string& name, const std::string& what, const std::string& version);
  ~Program();

  Verb verb(const std::string& name, const std::string& what);

  // Parses, runs the chosen verb and returns what its action did; nothing after --help or --version, which were
  // printed. Throws what the action throws, and Usage for arguments that make no sense, naming the word that is
  // misspelt.
  std::optional<int> parse(int argc, char** argv);

  // The same with all that a tool's main needs: the error's code, 2 for arguments that make no sense. An
  // error is printed as `error[CODE]: …` on stderr and, with --json, as {"error": …} on stdout. After Interrupted the
  // process ends by that signal.
  int run(int argc, char** argv);

 private:
  std::unique_ptr<CLI::App> app_;
  int exit_code_ = 0;
};

// The result, on stdout: one JSON object and a newline, or the text. Everything else goes to stderr. What a bundle, a
// job or a file's name brings into any of them reaches a terminal as terminal_text (core/foreign_text.hpp).
void print(bool json, const Json& object, std::string_view text);

// On stderr: "error[CODE]: …", and "warning: …" for each.
void print_error(const Error& error);
void print_warnings(const std::vector<std::string>& warnings);

// {"code": "digest", "exit": 5, "what": …}, with the facts that are known.
Json json_of(const Error& error);

}  // namespace sealift::bundle
