// SPDX-License-Identifier: Apache-2.0
// The project in a source archive: unpacked, found, and asked what it takes to build it. All of it is foreign.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "packager/builds/build_order.hpp"

namespace sealift::packager {

// pyproject.toml's [build-system], or what PEP 517 says where there is none.
struct BuildSystem {
  std::vector<std::string> requires_;
  std::string backend = "setuptools.build_meta:__legacy__";
  std::vector<std::string> paths;
};

// Into `place`/source, an empty folder. By the sandbox too: the archive is as
// foreign as what is in it. Throws Format.
void unpack_source(const BuildOrder& order, const BuildTools& tools, const std::filesystem::path& place);

// The project's folder: the top, or the one folder that an sdist has there. Throws Format.
std::filesystem::path project_of(const BuildOrder& order, const std::filesystem::path& place);

// Throws Format, also where a requirement is not plain.
BuildSystem read_build_system(const BuildOrder& order, const std::filesystem::path& place);

// A line of a foreign project becomes a line of uv's input: throws Format for an option, a second line, and whatever
// is of this machine's disk.
void require_plain(const BuildOrder& order, const std::vector<std::string>& requirements);

}  // namespace sealift::packager
