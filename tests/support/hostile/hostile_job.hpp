// SPDX-License-Identifier: Apache-2.0
// Row C01: job files with one fault each, made from a good one. The files they name are not there.
#pragma once

#include "tests/support/hostile/hostile_case.hpp"

namespace sealift::test {

inline std::string good_job() {
  return "name = \"air-gap\"\nversion = 3\nchannel = \"samples\"\n[target]\narch = \"x86_64\"\nglibc = \"2.28\"\n"
         "[python]\nversion = \"3.11\"\nrequirements = [\"torch==2.11.0\"]\nimports = [\"torch\"]\n";
}

inline std::string good_lock() {
  const std::string digest(64, 'a');
  return "format = 1\nname = \"air-gap\"\nversion = 3\nchannel = \"stable\"\ncreated = \"2026-01-01T00:00:00Z\"\n"
         "python = \"3.11\"\nimports = [\"torch\"]\n[target]\narch = \"x86_64\"\nglibc = \"2.28\"\n"
         "glibc_floor = \"2.17\"\n[interpreter]\ndescription = \"x\"\nversion = \"3.11.2\"\nsha256 = \"" +
         digest + "\"\nsize = 5\nlibraries = []\n[[program]]\nsource = \"bin/x\"\nsha256 = \"" + digest +
         "\"\nsize = 1\ninto = \"bin/x\"\n[[wheel]]\nname = \"a\"\nversion = \"1\"\nfile = \"a-1-py3-none-any.whl\"\n"
         "url = \"https://index.example/a-1-py3-none-any.whl\"\nsha256 = \"" +
         digest + "\"\nsize = 7\n";
}

inline HostileCases hostile_jobs() {
  HostileCases cases;
  const auto add = [&](const std::string& name, std::string bytes, const char* word) {
    cases.push_back({.row = "C01",
                     .name = name,
                     .bytes = std::move(bytes),
                     .code = bundle::ErrorCode::Usage,
                     .word = word,
                     .file = "job.toml"});
  };
  const auto text = [&](const char* name, const std::string& before, const std::string& after, const char* word) {
    std::string bytes = good_job();
    add(name, bytes.replace(bytes.find(before), before.size(), after), word);
  };
  text("unknown-key", "channel", "chanel", "line 3, key 'chanel'");
  text("unknown-key-in-a-table", "imports", "import", "line 10, key 'python.import'");
  text("unknown-table", "[python]", "[colour]\n[python]", "colour");
  text("text-for-a-number", "version = 3\n", "version = \"3\"\n", "line 2, key 'version'");
  text("float", "version = 3\n", "version = 3.0\n", "a whole number");
  text("date", "version = 3\n", "version = 2026-01-01\n", "a whole number");
  // toml++ assumes that a time follows the space.
  text("date-and-one-digit", "version = 3\n", "version = 2026-01-01 1\n", "line 2");
  text("negative", "version = 3\n", "version = -1\n", "negative");
  text("two-to-the-63", "version = 3\n", "version = 9223372036854775808\n", "line 2");
  text("number-of-a-thousand-digits", "version = 3\n", "version = 1" + std::string(1000, '0') + "\n", "line 2");
  text("zero", "version = 3\n", "version = 0\n", "start at 1");
  text("key-twice", "version = 3\n", "version = 3\nversion = 4\n", "line 3");
  text("name-with-a-path", "\"air-gap\"", "\"../etc\"", "not plain");
  text("table-for-text", "name = \"air-gap\"", "name = {a = 1}", "a string");
  text("number-in-a-list-of-texts", "[\"torch\"]", "[7]", "array of strings");
  text("open-quote", "\"air-gap\"", "\"air-gap", "line 1");
  text("not-utf-8", "air-gap", "\xff\xfe", "line 1");
  text("control-character", "air-gap", std::string("a\0b", 3), "line 1");
  add("nothing", "", "missing");
  add("deep-arrays", "a = " + std::string(100'000, '[') + "\n", "TOML");
  add(
      "deep-tables",
      "a = " +
          [] {
            std::string tables;
            for (int i = 0; i < 50'000; ++i) tables += "{a=";
            return tables;
          }(),
      "TOML");
  std::string dotted = "a", quoted = "\"=\"";
  for (int i = 0; i < 50'000; ++i) dotted += ".a", quoted += ".\"=\"";
  const char* deep = "depth of 16";
  add("deep-dotted-key", dotted + " = 1\n" + good_job(), deep);
  add("deep-quoted-key", quoted + " = 1\n" + good_job(), deep);
  add("deep-table-header", good_job() + "[" + dotted + "]\n", "line 11");
  add("deep-key-in-a-table", "a = {" + dotted + " = 1}\n", deep);
  add("deep-key-after-a-text", "a = {b = \"\"\"x\n\\\"\"\"\"\"\", " + dotted + " = 1}\n", deep);
  add("deep-key-after-a-literal", "a = {b = '''x\\''''', " + dotted + " = 1}\n", deep);
  add("deep-key-after-a-comment", "a = \"\\\"\" # \"\n" + dotted + " = 1\n", "line 2");
  for (const char* header : {"[)]", "[[)a]]", "[ .a]", "[=]", "[{a}]", "[+1]"})
    add("table-without-a-name-" + std::to_string(cases.size()), good_job() + header + "\n", "line 11");
  for (const char* line : {"\u01b4 = 1\n", "[\u0409]\n", "a = \u00e9\n", "\u00a0\n", "a = \"\" \u01b4\n"})
    add("letter-outside-ascii-" + std::to_string(cases.size()), good_job() + line, "line 11");
  add("quote-inside-of-a-word", good_job() + "a = 0x'\u01b4'\n", "line 11");
  add("bracket-of-another-kind", good_job() + "a = [}\n", "line 11");
  add("bracket-of-another-kind-inside", good_job() + "a = {b = [1, {c = 2]}\n", "line 11");
  add("table-without-a-name-after-a-value", "a = []\n[)]\n", "line 2");
  return cases;
}

}  // namespace sealift::test
