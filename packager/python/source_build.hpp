// SPDX-License-Identifier: Apache-2.0
// One source archive built into one wheel: with the target's Python, in an environment of its own whose packages are
// pinned by hash, without network where the machine can take it away, at a fixed place and a fixed time, so that the
// same source and the same tools give the same bytes. Hooks are those of PEP 517; uv makes the environment.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "packager/job/lock.hpp"

namespace sealift::packager {

struct BuildTools {
  std::filesystem::path uv;
  std::filesystem::path python;                // of the target's version
  std::string python_version;                  // "3.11.2"
  std::vector<std::string> build_constraints;  // requirements that narrow what a build gets
  std::vector<std::string> index_words;        // for uv
};

struct BuildOrder {
  std::string name;               // normalized
  std::string version;            // for messages
  std::string scm_version;        // of a repository, whose tags the archive lacks; else empty
  std::filesystem::path archive;  // .tar, .tar.gz, …, or .zip; its digest was checked
  std::string subdirectory;       // of it; empty: where the project is
  bool again = false;             // there was an earlier build, with these
  std::vector<std::string> requirements;
};

struct BuiltWheel {
  std::filesystem::path file;  // under `place`
  std::vector<std::string> requirements;
};

// What uv and the compiler say they are, in one line.
std::string describe_tools(const BuildTools& tools);

// Builds below `place`, a folder that is emptied first; the caller lets nobody else use it. Throws SelfTest with the
// last lines that the build said, Network when its requirements cannot be had.
BuiltWheel build_wheel(const BuildOrder& order, const BuildTools& tools, const std::filesystem::path& place);

}  // namespace sealift::packager
