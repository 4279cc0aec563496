// SPDX-License-Identifier: Apache-2.0
// All lines that uv will read of a job, looked through three times; see input_variables.hpp.
#include "packager/resolve/input_variables.hpp"

#include <algorithm>
#include <cstdlib>

#include "packager/host/http_logins.hpp"
#include "packager/host/url.hpp"
#include "packager/resolve/pylock.hpp"
#include "packager/resolve/requirement_hashes.hpp"
#include "sealift/bundle/core/file.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kMostInput = std::uint64_t{64} << 20;
constexpr int kMostDepth = 20;

struct InputLine {
  fs::path file;
  std::string text;
};

void read_lines(const fs::path& file, int depth, std::vector<InputLine>& out) {
  if (depth > kMostDepth || !fs::is_regular_file(file)) return;  // `resolve` refuses it
  for (const std::string& line : requirement_lines(bundle::read_text(file, kMostInput))) {
    out.push_back({file, line});
    for (const char* option : {"-r", "--requirement", "-c", "--constraint"})
      if (const std::string other = option_value(line, option); !other.empty() && other.find("://") == other.npos)
        read_lines(file.parent_path() / with_variables(other), depth + 1, out);
  }
}

std::vector<InputLine> input_lines(const Job& job) {
  std::vector<InputLine> lines;
  for (const auto* list : {&job.inputs.requirements, &job.inputs.constraints, &job.inputs.build_constraints})
    for (const std::string& line : *list) lines.push_back({job.file, line});
  if (job.inputs.requirements_file) read_lines(*job.inputs.requirements_file, 0, lines);
  return lines;
}

// Not the variables that change what uv does, no matter who wrote the file.
bool is_for_uv(const std::string& name) {
  return !name.starts_with("UV_") && !name.starts_with("LD_") && !name.starts_with("GIT_");
}

void add_once(std::vector<std::string>& list, std::string text) {
  if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(std::move(text));
}

// "https://host/${TOKEN}" of "… https://me:${PASSWORD}@host/${TOKEN}/simple".
void add_variable_addresses(const std::string& line, std::vector<std::string>& out) {
  HttpLogins logins;
  const std::string text = logins.take(line);
  for (std::size_t at = text.find("http"); at != text.npos; at = text.find("http", at + 4)) {
    const std::string address = text.substr(at, text.find_first_of(" \t\"'", at) - at);
    const std::size_t last = address.rfind("${");
    const bool of_git = at > 0 && text[at - 1] == '+';
    if (of_git || last == address.npos || address.find("://") > last || variables_in(address.substr(last)).empty())
      continue;
    add_once(out, address.substr(0, address.find('}', last) + 1));
  }
}

}  // namespace

std::map<std::string, std::string> input_variables(const Job& job) {
  std::map<std::string, std::string> variables;
  for (const InputLine& line : input_lines(job))
    for (const std::string& name : variables_in(line.text))
      if (const char* const value = std::getenv(name.c_str()); value != nullptr && is_for_uv(name))
        variables.emplace(name, value);
  return variables;
}

std::vector<std::string> unset_input_variables(const Job& job) {
  std::vector<std::string> names;
  for (const InputLine& line : input_lines(job))
    for (const std::string& name : variables_in(line.text))
      if (name != "PROJECT_ROOT" && (std::getenv(name.c_str()) == nullptr || !is_for_uv(name))) add_once(names, name);
  return names;
}

LockedIndexes with_inputs(LockedIndexes indexes, const Job& job) {
  if (job.inputs.requirements_file) indexes.in_files = index_lines(*job.inputs.requirements_file);
  if (job.inputs.lock_file)
    for (const std::string& index : indexes_of_lock(bundle::read_text(*job.inputs.lock_file, kMostInput)))
      indexes.in_files.push_back("--index " + without_credentials(index));
  for (const InputLine& line : input_lines(job)) {
    HttpLogins logins;
    const fs::path file = fs::absolute(line.file).lexically_normal();
    const bool known =
        std::find(indexes.login_files.begin(), indexes.login_files.end(), file) != indexes.login_files.end();
    if (!known && logins.take(line.text) != line.text) indexes.login_files.push_back(file);
    add_variable_addresses(line.text, indexes.variable_addresses);
  }
  return indexes;
}

}  // namespace sealift::packager
