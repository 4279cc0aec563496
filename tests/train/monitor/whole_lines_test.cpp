// SPDX-License-Identifier: Apache-2.0
// A log that a kill or a loss of power has cut, before a run goes on with it.
#include "trainer/monitor/whole_lines.hpp"

#include "tests/support/temp_dir.hpp"
#include "trainer/monitor/step_log.hpp"

#include <doctest/doctest.h>

using namespace sealift::trainer;
using sealift::test::read_file;
using sealift::test::TempDir;

TEST_CASE("what follows the last whole line is taken off, and nothing else") {
  const TempDir folder;
  const auto path = folder / "log.jsonl";
  const auto left_of = [&](const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
    end_in_whole_line(path);
    return read_file(path);
  };
  const std::string whole = "{\"step\":1}\n{\"step\":2}\n";
  CHECK(left_of(whole) == whole);
  CHECK(left_of(whole + "{\"step\":3,\"lo") == whole);
  CHECK(left_of(whole + std::string(4096, '\0')) == whole);
  CHECK(left_of(whole + std::string(10, '\0') + "\n" + whole) == whole);
  CHECK(left_of("{\"step\":1") == "");
  CHECK(left_of("") == "");
  CHECK(left_of("\n") == "\n");
  const std::string much(std::size_t{3} << 20, 'x');
  CHECK(left_of(much) == much);  // no log of ours
  CHECK(left_of(much + "\n{\"step\"") == much + "\n");
  std::filesystem::remove(path);
  CHECK_NOTHROW(end_in_whole_line(path));
}

TEST_CASE("a line that a kill has cut does not spoil the first one of the run that goes on") {
  const TempDir folder;
  std::ofstream(folder / "log.jsonl") << "{\"step\":1,\"loss\":2.0}\n{\"step\":2,\"loss\":1.";
  StepLog log(folder.path(), 9, 1);
  log.write({{"step", 2}});
  CHECK(read_file(folder / "log.jsonl") == "{\"step\":1,\"loss\":2.0}\n{\"step\":2}\n");
}
