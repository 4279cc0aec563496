// SPDX-License-Identifier: Apache-2.0
// The options that keep git from starting programs; see git_command.hpp.
#include "packager/builds/git_command.hpp"

namespace sealift::packager {

ProcessResult run_git(std::vector<std::string> words, std::map<std::string, std::string> variables) {
  static const std::vector<std::string> kQuiet = {"git",
                                                  "-c",
                                                  "core.hooksPath=/dev/null",
                                                  "-c",
                                                  "core.fsmonitor=false",
                                                  "-c",
                                                  "init.templateDir=",
                                                  "-c",
                                                  "protocol.ext.allow=never"};
  words.insert(words.begin(), kQuiet.begin(), kQuiet.end());
  variables["GIT_LFS_SKIP_SMUDGE"] = "1";
  return run_process(words, variables);
}

}  // namespace sealift::packager
