// SPDX-License-Identifier: Apache-2.0
// What messages tell people to write into a job file, held to the reader of job files: found in the sources' own texts,
// so that a remedy with an unknown key cannot be printed, wherever it is written.
#include <doctest/doctest.h>

#include <map>
#include <regex>
#include <set>
#include <string>

#include "packager/job/job.hpp"
#include "sealift/bundle/core/error.hpp"
#include "tests/support/temp_dir.hpp"

using namespace sealift;
using sealift::test::read_file;
using sealift::test::TempDir;
using sealift::test::write_file;
namespace fs = std::filesystem;

namespace {

// The string literals of a source; neighbours are one, and what is put between two of them is X.
std::vector<std::string> texts_of(const std::string& source) {
  std::vector<std::string> texts;
  bool goes_on = false;
  for (std::size_t at = 0; at < source.size();) {
    if (source.compare(at, 2, "//") == 0) {
      at = source.find('\n', at);
    } else if (source[at] == '\'' && at > 0 && std::isalnum(static_cast<unsigned char>(source[at - 1])) == 0) {
      at = source.find('\'', at + (source[at + 1] == '\\' ? 3 : 2));
      at += at == source.npos ? 0 : 1;
    } else if (source.compare(at, 3, "R\"(") == 0) {
      at = source.find(")\"", at);
      at += at == source.npos ? 0 : 2;
    } else if (source[at] != '"') {
      if (source[at] == ';' || source[at] == '{' || source[at] == '}' || source[at] == ',') goes_on = false;
      if (source[at] == '+' && goes_on && !texts.back().ends_with('X')) texts.back() += 'X';
      ++at;
    } else {
      if (!goes_on) texts.emplace_back();
      for (++at; at < source.size() && source[at] != '"'; ++at) {
        const bool escaped = source[at] == '\\';
        if (escaped) ++at;
        texts.back() += escaped && source[at] == 'n' ? '\n' : source[at];
      }
      ++at;
      goes_on = true;
    }
    if (at == std::string::npos) break;
  }
  return texts;
}

// A job with `line` in `table` ("[python]", "[[program]]"), in place of what it says there itself.
std::string job_with(const std::string& table, const std::string& key, const std::string& line) {
  std::vector<std::pair<std::string, std::map<std::string, std::string>>> parts = {
      {"", {{"name", "\"x\""}, {"version", "1"}, {"channel", "\"c\""}}},
      {"[target]", {{"arch", "\"x86_64\""}, {"glibc", "\"2.28\""}}},
      {"[python]", {{"version", "\"3.11\""}, {"requirements", "[\"torch\"]"}}}};
  const std::map<std::string, std::map<std::string, std::string>> needed = {
      {"[[program]]", {{"source", "\"bin/x\""}, {"into", "\"bin/x\""}}},
      {"[[data]]", {{"source", "\"data\""}, {"into", "\"data/x\""}}},
      {"[[model]]", {{"source", "\"data\""}}},
      {"[[owner]]", {{"path", "\"a\""}, {"package", "\"b\""}}},
      {"[[startup]]", {{"package", "\"b\""}, {"sha256", "\"" + std::string(64, 'a') + "\""}}},
      {"[[golden]]", {{"name", "\"g\""}, {"job", "\"g.toml\""}}},
      {"[apt]", {{"packages", "[\"make\"]"}, {"suite", "\"bookworm\""}}},
      {"[rpm]", {{"packages", "[\"make\"]"}, {"release", "\"9\""}}}};
  if (table != "[python]" && table != "[target]") {
    const auto base = needed.find(table);
    parts.push_back({table, base == needed.end() ? std::map<std::string, std::string>() : base->second});
  }
  std::string text;
  for (auto& [name, lines] : parts) {
    if (name == table) lines.erase(key);
    if (name == "[[golden]]" && key == "result") lines.erase("job");  // in its place
    text += name + "\n";
    for (const auto& [one, value] : lines) text += one + " = " + value + "\n";
    if (name == table) text += line + "\n";
  }
  return text;
}

// Whether the reader of job files takes it for a key; whether the value is right is another question.
bool is_key(const TempDir& dir, const std::string& table, const std::string& key, const std::string& value) {
  const std::string name = table.substr(table.find_first_not_of('['), table.find(']') - table.find_first_not_of('['));
  for (const std::string& tried :
       {value, std::string("\"x\""), std::string("[\"x\"]"), std::string("true"), std::string("{}")}) {
    if (tried.empty()) continue;
    write_file(dir / "job.toml", job_with(table, key, key.empty() ? "" : key + " = " + tried));
    try {
      packager::read_job(dir / "job.toml");
      return true;
    } catch (const bundle::Error& error) {
      const std::string said = error.what();
      if (said.find("a key is not known") == said.npos) continue;
      if (said.find("'" + name + (key.empty() ? "" : "." + key) + "'") != said.npos ||
          said.find("'" + name + "'") != said.npos)
        return false;
    }
  }
  return true;
}

}  // namespace

TEST_CASE("what a message tells people to write into the job file is there for them to write") {
  const TempDir dir;
  write_file(dir / "bin/x", "#!/bin/sh\n");
  write_file(dir / "data/x.txt", "x");
  write_file(dir / "g.toml", "");
  for (const char* table : {"[python]", "[target]", "[[program]]", "[[owner]]", "[[startup]]", "[toolchain]", "[sdk]"})
    CHECK_FALSE(is_key(dir, table, "nosuch", "1"));  // the question can be answered with no
  CHECK_FALSE(is_key(dir, "[[python.index]]", "", "x"));

  const std::regex told(
      R"(\[\[?([a-z]+(?:\.[a-z_]+)*)\]\]?(?:[ .]|: |\n +| with | and )([a-z]+(?:_[a-z]+)*)?( = ("[^"]*"|true|false|\[[^\]]*\]|\{[^}]*\}))?)");
  const std::set<std::string> tables = {"python", "target", "program", "owner",  "startup", "toolchain",
                                        "sdk",    "data",   "model",   "golden", "apt",     "rpm"};
  const std::set<std::string> words = {"of",   "or",     "and",  "with", "has", "carries", "on",   "do",
                                       "rule", "tables", "into", "then", "so",  "finds",   "names"};
  const fs::path root =
      fs::path(SEALIFT_UV_BESIDE).parent_path().parent_path().parent_path().parent_path().parent_path();
  std::set<std::string> seen;
  for (const char* part : {"packager", "bundle/wheel", "bundle/native"})
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / part)) {
      const std::string path = entry.path().string();
      if (!path.ends_with(".cpp") || path.find("/lock/") != path.npos || path.ends_with("_toml.cpp")) continue;
      for (const std::string& text : texts_of(read_file(entry.path())))
        for (std::sregex_iterator at(text.begin(), text.end(), told), end; at != end; ++at) {
          const std::string name = (*at)[1], key = (*at)[2], value = (*at)[4];
          const bool array = at->str().starts_with("[[");
          const std::string table = (array ? "[[" : "[") + name + (array ? "]]" : "]");
          const bool plain = words.contains(key) && value.empty();
          if (array ? name == "deb" || name == "wheel" || name == "python"
                    : !tables.contains(name.substr(0, name.find('.'))))
            continue;
          if (name.find("python.extra_build") == 0) continue;  // their keys are names of packages
          CHECK_MESSAGE(is_key(dir, table, plain ? "" : key, value), path, ": ", at->str());
          seen.insert(table + " " + key);
        }
    }
  CHECK(seen.contains("[python] excludes"));
  CHECK(seen.contains("[target] runtime"));
  CHECK(seen.contains("[[program]] source"));
  CHECK(seen.size() > 20);
}
