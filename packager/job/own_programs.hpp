// SPDX-License-Identifier: Apache-2.0
// [[program]] name = "sealift-train": a program of this project with all that belongs to it, out of an installation.
// Read with the job; what comes out are programs like all others.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "packager/tables/toml_file.hpp"

namespace sealift::packager {

struct JobProgram {
  std::filesystem::path source;
  std::string into;  // its path in the generation; a SafePath's text
  bool executable = true;

  bool operator==(const JobProgram&) const = default;
};

// What `table`, which has the key `name`, stands for. `folder` is that of the job file. Throws Usage for a name outside
// of our programs, and for a program that is not installed.
std::vector<JobProgram> read_own_program(TomlTable& table, const std::filesystem::path& folder);

}  // namespace sealift::packager
