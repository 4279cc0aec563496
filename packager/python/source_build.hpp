// SPDX-License-Identifier: Apache-2.0
// Builds one wheel from one source archive: with the target's Python, in an environment of its own whose packages are
// pinned by hash, in a sandbox without a network, at a fixed path and a fixed time, so that the same source and the
// same tools give the same bytes. The hooks are those of PEP 517; uv makes the environment.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "packager/host/git_login.hpp"
#include "packager/host/sandbox.hpp"
#include "packager/job/lock.hpp"
#include "packager/job/python_inputs.hpp"

namespace sealift::packager {

struct BuildTools {
  std::filesystem::path uv;
  std::filesystem::path python;                    // of the target's version
  std::string python_version;                      // "3.11.2"
  std::vector<std::string> build_constraints;      // on the requirements of builds
  std::map<std::string, BuildExtras> extras = {};  // by package, normalized
  std::vector<std::string> index_words;            // arguments of uv
  Isolation isolation = Isolation::Sandbox;
  GitLogins logins = {};  // of the repositories that are cloned
};

struct BuildOrder {
  std::string name;                    // normalized
  std::string version;                 // for messages
  std::string scm_version;             // of a repository, because the archive lacks its tags; else empty
  std::filesystem::path history = {};  // a .git folder, to learn the version from; else empty
  std::filesystem::path archive;       // .tar, .tar.gz, …, or .zip; its digest was checked
  std::string subdirectory;            // of the project in the archive; may be empty
  bool again = false;                  // repeats an earlier build, with these pinned requirements
  std::vector<std::string> requirements;
  BuildExtras extras = {};  // of the job; of an earlier build the variables alone, since its requirements have the rest
};

struct BuiltWheel {
  std::filesystem::path file;  // under `place`
  std::vector<std::string> requirements;
};

// The versions of uv and of the compiler, in one line.
std::string describe_tools(const BuildTools& tools);

// Builds below `place`, a folder that is emptied first and that nobody else may use. Throws SelfTest with the last
// lines of the build's log, Network when its requirements cannot be fetched, CannotCheck where there is no sandbox.
BuiltWheel build_wheel(const BuildOrder& order, const BuildTools& tools, const std::filesystem::path& place);

}  // namespace sealift::packager
