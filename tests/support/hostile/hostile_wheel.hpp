// SPDX-License-Identifier: Apache-2.0
// Rows W10 to W14: wheels that break a promise, or would run or replace what is not theirs.
#pragma once

#include "bundle/wheel/wheel_startup.hpp"
#include "tests/support/hostile/hostile_case.hpp"
#include "tests/support/tiny_wheel.hpp"

namespace sealift::test {

inline HostileCases hostile_wheels() {
  using bundle::ErrorCode;
  const std::string zeros = "sha256=" + std::string(43, 'A'), info = "demo-1.0.dist-info/";
  HostileCases cases;
  const auto add = [&](const char* row, const std::string& name, const TinyWheel& wheel, const char* word,
                       ErrorCode code = ErrorCode::Format, const std::string& file = {}) {
    cases.push_back({.row = row,
                     .name = name,
                     .bytes = make_wheel(wheel),
                     .code = code,
                     .word = word,
                     .file = file.empty() ? wheel.file_name() : file});
  };
  const auto files = [&](const char* row, const std::string& name, std::map<std::string, std::string> content,
                         const char* word, ErrorCode code = ErrorCode::Format) {
    add(row, name, {.files = std::move(content)}, word, code);
  };

  const std::map<std::string, std::string> plain = {{"demo/__init__.py", "ANSWER = 42\n"}};
  cases.push_back({.row = "W10",
                   .name = "no-record",
                   .bytes = make_zip({{.name = info + "WHEEL", .bytes = "Wheel-Version: 1.0\n"},
                                      {.name = info + "METADATA", .bytes = "Name: demo\nVersion: 1.0\n"}}),
                   .word = "no RECORD",
                   .file = "demo-1.0-py3-none-any.whl"});
  add("W10", "file-not-in-record", {.unrecorded = {"demo/__init__.py"}}, "not listed in RECORD");
  add("W10", "file-without-digest", {.record_digests = {{"demo/__init__.py", ""}}}, "not listed in RECORD");
  add("W10", "record-lists-nothing", {.extra_record = "gone.py," + zeros + ",0\n"}, "gone.py");
  add("W10", "record-lists-a-path-outside", {.extra_record = "../../x," + zeros + ",0\n"}, "../../x");
  add("W10", "record-lists-another-case", {.extra_record = "demo/__INIT__.py," + zeros + ",0\n"}, "__INIT__");
  add("W10", "wrong-digest", {.record_digests = {{"demo/__init__.py", zeros}}}, "demo/__init__.py", ErrorCode::Digest);
  add("W10", "md5", {.record_digests = {{"demo/__init__.py", "md5=abc"}}}, "md5", ErrorCode::CannotCheck);
  add("W10", "short-digest", {.record_digests = {{"demo/__init__.py", "sha256=short"}}}, "does not parse");
  add("W10", "row-twice", {.extra_record = "demo/__init__.py,,\n"}, "stands twice");
  add("W10", "open-quote", {.extra_record = "\"open,sha256=x\n"}, "open quote");
  add("W10", "too-many-fields", {.extra_record = "a,,,b\n"}, "not path,digest,size");
  add("W10", "wrong-size", {.unrecorded = {"demo/__init__.py"}, .extra_record = "demo/__init__.py," + zeros + ",99\n"},
      "another size");
  add("W10", "size-that-is-no-number", {.extra_record = "x," + zeros + ",-1\n"}, "no number");
  std::string rows;
  for (int i = 0; i < 3000; ++i) rows += std::to_string(i) + ",,\n";
  add("W10", "three-thousand-rows-too-many", {.extra_record = rows}, "more files than the wheel");
  files("W11", "two-dist-infos", {{"x-1.dist-info/METADATA", "2"}}, "more than one .dist-info");
  add("W11", "another-project", {}, "of its own name", ErrorCode::Format, "other-1.0-py3-none-any.whl");
  add("W11", "another-version", {}, "of its own name and version", ErrorCode::Format, "demo-2.0-py3-none-any.whl");
  const auto metadata = [&](const std::string& name, const std::string& text, const char* word) {
    files("W11", name, {{info + "METADATA", text}}, word);
  };
  metadata("metadata-not-utf-8", "Name: demo\nVersion: 1.0\nAuthor: \xff\n", "not UTF-8");
  metadata("metadata-of-another-project", "Name: torch\nVersion: 1.0\n", "another project");
  metadata("metadata-of-another-version", "Name: demo\nVersion: 1.0.1\n", "another project or version");
  metadata("metadata-without-a-name", "Version: 1.0\n\nName: demo\n", "another project or version");
  metadata("metadata-with-two-names", "name: torch\nName: demo\nVersion: 1.0\n", "twice");
  files("W11", "wheel-version-2", {{info + "WHEEL", "Wheel-Version: 2.0\n"}}, "does not know", ErrorCode::CannotCheck);
  files("W11", "wheel-without-version", {{info + "WHEEL", "X-Wheel-Version: 1.0\n"}}, "names no version");
  files("W11", "data-of-unknown-kind", {{"demo-1.0.data/bin/x", "x"}}, "unknown part of .data");
  files("W11", "two-files-for-one-place", {{"demo-1.0.data/purelib/x.py", "1"}, {"x.py", "2"}}, "one place");
  for (const char* script : {"python", "python3", "python3.11", "Python.exe", "PYTHON3", "pythonw"}) {
    add("W12", std::string("entry-point-") + script,
        {.entry_points = std::string("[console_scripts]\n") + script + " = demo:main\n"}, "interpreter",
        ErrorCode::Conflict);
    files("W12", std::string("script-") + script, {{std::string("demo-1.0.data/scripts/") + script, "#!python\n"}},
          "interpreter", ErrorCode::Conflict);
  }
  int number = 0;
  for (const char* point :
       {"a = b", "../a = b:c", "a = b;import os:c", "a = b:c()", "a/b = c:d", " = b:c", "a = :c", "a = b:", "a = b.:c"})
    add("W12", "entry-point-" + std::to_string(number++),
        {.entry_points = std::string("[console_scripts]\n") + point + "\n"}, "");
  files("W12", "script-outside", {{"demo-1.0.data/scripts/../../x", "x"}}, "not safe");
  files("W13", "pth-with-import", {{"evil.pth", "import os; os.system('x')\n"}}, "when Python starts");
  files("W13", "pth-with-import-and-tab", {{"evil.pth", "# a comment\n\nimport\tos\n"}}, "when Python starts");
  files("W13", "pth-after-a-carriage-return", {{"evil.pth", "folder\rimport evil"}}, "when Python starts");
  files("W13", "pth-with-byte-order-mark", {{"evil.pth", "\xef\xbb\xbfimport evil\n"}}, "byte order mark");
  files("W13", "pth-that-is-nearly-setuptools",
        {{"evil.pth", bundle::detail::distutils_line("local") + " import evil\n"}}, "when Python starts");
  files("W13", "pth-that-is-nearly-a-namespace",
        {{"evil.pth", bundle::detail::namespace_line("google", false) + ";import evil\n"}}, "when Python starts");
  files("W13", "pth-with-a-folder-outside", {{"evil.pth", "../../evil\n"}}, "not the wheel's");
  files("W13", "pth-with-an-absolute-folder", {{"evil.pth", "/tmp\n"}}, "not the wheel's");
  files("W13", "pth-in-capitals", {{"EVIL.PTH", "import evil\n"}}, "when Python starts");
  files("W13", "pth-by-way-of-purelib", {{"demo-1.0.data/purelib/evil.pth", "import evil\n"}}, "when Python starts");
  files("W13", "pth-by-way-of-data", {{"demo-1.0.data/data/lib/python3.11/site-packages/evil.pth", "import evil\n"}},
        "another way");
  for (const char* module : {"sitecustomize.py", "usercustomize.py", "sitecustomize/__init__.py",
                             "sitecustomize.cpython-311-x86_64-linux-gnu.so"})
    files("W13", std::string(module).substr(0, 13) + std::to_string(number++), {{module, "x"}}, "when Python starts");
  add("W14", "sdist", {}, "file name", ErrorCode::Format, "demo-1.0.tar.gz");
  add("W14", "egg", {}, "file name", ErrorCode::Format, "demo-1.0-py3.11.egg");
  add("W14", "too-few-tags", {}, "file name", ErrorCode::Format, "demo-1.0-py3-none.whl");
  return cases;
}

}  // namespace sealift::test
