// SPDX-License-Identifier: Apache-2.0
// Where the tests find the programs and libraries that fetch from a repository: what cmake/prerequisites.sh installs,
// or the environment that SEALIFT_CLIENTS_PREFIX names.
#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/support/left_out.hpp"

namespace sealift::test {

// The program's path; empty, and said, where it is not there.
inline std::string client(const std::string& name) {
  const char* named = std::getenv("SEALIFT_CLIENTS_PREFIX");
  const std::string path = (named != nullptr ? std::string(named) : SEALIFT_CLIENTS) + "/bin/" + name;
  if (std::filesystem::exists(path)) return path;
  sealift::test::left_out("this machine has no ", path);
  return {};
}

// A Python that has ModelScope's client; SEALIFT_MODELSCOPE_PYTHON names one with another version.
inline std::string modelscope_python() {
  const char* named = std::getenv("SEALIFT_MODELSCOPE_PYTHON");
  return named != nullptr ? named : client("python");
}

}  // namespace sealift::test
