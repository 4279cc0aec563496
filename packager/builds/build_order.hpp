// SPDX-License-Identifier: Apache-2.0
// What is to be built from its source, with which tools; source_build.hpp does it.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "packager/host/git_login.hpp"
#include "packager/host/http_logins.hpp"
#include "packager/host/sandbox.hpp"
#include "packager/job/python_inputs.hpp"
#include "packager/lock/lock.hpp"
#include "sealift/bundle/host/progress.hpp"

namespace sealift::packager {

struct BuildTools {
  std::filesystem::path uv;
  std::filesystem::path python;                    // of the target's version
  std::string python_version;                      // "3.11.2"
  std::vector<std::string> build_constraints;      // on the requirements of builds
  std::map<std::string, BuildExtras> extras = {};  // by package, normalized
  std::vector<std::string> index_words;            // arguments of uv
  Isolation isolation = Isolation::Sandbox;
  GitLogins logins = {};                 // of the repositories that are cloned
  HttpLogins index_logins = {};          // of the servers that archives come from
  bundle::Progress* progress = nullptr;  // told of steps that last
};

struct BuildOrder {
  std::string name;               // normalized
  std::string version;            // for messages
  std::string scm_version;        // of a repository, for archives without .git, as older locks have them
  std::filesystem::path archive;  // .tar, .tar.gz, …, or .zip; its digest was checked
  std::string subdirectory;       // of the project in the archive; may be empty
  bool again = false;             // repeats an earlier build, with these pinned requirements
  std::vector<std::string> requirements;
  BuildExtras extras = {};  // of the job; of an earlier build the variables alone, since its requirements have the rest
};

}  // namespace sealift::packager
