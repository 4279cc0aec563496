// SPDX-License-Identifier: Apache-2.0
// Names, values and lines; see variables.hpp.
#include "sealift/bundle/manifest/variables.hpp"

#include <algorithm>
#include <array>

#include "bundle/core/unicode.hpp"
#include "sealift/bundle/core/error.hpp"
#include "sealift/bundle/core/safe_path.hpp"
#include "sealift/bundle/manifest/allowed_variables.hpp"

namespace sealift::bundle {

namespace {

constexpr std::size_t kMaxVariables = 200;
constexpr std::size_t kMaxName = 100;
constexpr std::size_t kMaxValue = 300;  // with all of them the text stays below what sealift-start reads

constexpr std::array<std::string_view, 14> kReserved = {
    "PATH", "HOME", "USER", "SHELL", "IFS", "ENV", "BASH_ENV", "PS1", "SHLVL", "ZDOTDIR", "TERM", "TMPDIR", "PWD", "_"};

bool is_reserved(std::string_view name) {
  for (const std::string_view start :
       {"LD_", "SEALIFT_", "_SEALIFT", "_sealift", "PYTHON", "GLIBC_", "XDG_", "LUA", "LMOD"})
    if (name.starts_with(start)) return true;
  return std::find(kReserved.begin(), kReserved.end(), name) != kReserved.end();
}

bool is_name(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_'; };
  if (name.empty() || name.size() > kMaxName || !letter(name.front())) return false;
  return std::all_of(name.begin(), name.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

bool has_unknown_word(std::string_view value) {
  for (std::size_t at = value.find("${"); at != value.npos; at = value.find("${", at + 2))
    if (!value.substr(at).starts_with(kPrefixWord) && !value.substr(at).starts_with(kCacheWord)) return true;
  return false;
}

[[noreturn]] void refuse(const std::string& where, const char* what, std::string_view line) {
  throw Error(ErrorCode::Format, {.what = what,
                                  .where = where,
                                  .expected = "lines NAME=VALUE, sorted by their names",
                                  .got = SafePath::printable(std::string(line.substr(0, 80)))});
}

}  // namespace

const char* fault_of_variable(std::string_view name, std::string_view value) {
  if (!is_name(name)) return "this is not the name of a variable";
  if (is_reserved(name)) return "this variable is the shell's, the loader's, Python's or Sealift's own";
  if (value.size() > kMaxValue) return "the value of a variable is longer than 300 bytes";
  const bool one_line = std::all_of(value.begin(), value.end(),
                                    [](char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f; });
  if (!one_line || !is_utf8(value)) return "the value of a variable is not one line of text";
  return has_unknown_word(value) ? "only ${PREFIX} and ${CACHE} are replaced in a value" : nullptr;
}

const char* fault_of_carried_variable(std::string_view name, std::string_view value) {
  if (const char* const fault = fault_of_variable(name, value)) return fault;
  if (is_allowed_variable(name)) return nullptr;
  return "no package for training is known to read this variable (include/sealift/bundle/manifest/"
         "allowed_variables.hpp); one of your own begins with SITE_, any other is set where the job is started";
}

std::string write_variables(const Variables& variables) {
  std::string text;
  for (const auto& [name, value] : variables) text += name + "=" + value + "\n";
  return text;
}

Variables parse_variables(std::string_view text, const std::string& where) {
  Variables variables;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    if (end == text.npos) refuse(where, "the last line has no end", text.substr(begin));
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t equals = line.find('=');
    if (equals == line.npos) refuse(where, "this line sets nothing", line);
    const std::string name(line.substr(0, equals));
    if (const char* fault = fault_of_carried_variable(name, line.substr(equals + 1))) refuse(where, fault, line);
    if (!variables.empty() && !(variables.rbegin()->first < name))
      refuse(where, "a name stands out of order, or twice", line);
    if (variables.size() == kMaxVariables) refuse(where, "there are more than 200 variables", line);
    variables.emplace(name, line.substr(equals + 1));
  }
  return variables;
}

}  // namespace sealift::bundle
