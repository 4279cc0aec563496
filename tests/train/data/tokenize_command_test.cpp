// SPDX-License-Identifier: Apache-2.0
// Which Python tokenizes, and what it is told. What it does then is for tokenize_test.py.
#include "trainer/data/tokenize_command.hpp"

#include <doctest/doctest.h>

#include <fstream>

#include <unistd.h>

using namespace sealift::trainer;

TEST_CASE("the Python is the one that was chosen, else the one beside the program, else that of PATH") {
  const auto folder = std::filesystem::temp_directory_path() / ("prefix-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder / "bin");
  const auto program = folder / "bin" / "sealift-train";
  CHECK(python_for("", program) == "python3");
  std::ofstream(folder / "bin" / "python3") << "#!/bin/sh\n";
  CHECK(python_for("", program) == "python3");  // nobody can run it
  std::filesystem::permissions(folder / "bin" / "python3", std::filesystem::perms::owner_all);
  CHECK(python_for("", program) == (folder / "bin" / "python3").string());
  CHECK(python_for("/other/python", program) == "/other/python");
  std::filesystem::remove_all(folder);
}

TEST_CASE("the carried scripts fit into one argument, and what the user says comes after them") {
  const auto command = tokenize_command("python3", {"--model", "a b"});
  REQUIRE(command.size() == 5);
  CHECK(command[2].size() < 128 * 1024);  // MAX_ARG_STRLEN
  CHECK(command[2].find("def example_of") != std::string::npos);
  CHECK(command[4] == "a b");
}
