// SPDX-License-Identifier: Apache-2.0
// git for sources: of what a repository could make it start (hooks, its template's too, filters' programs, a monitor,
// odd transports) nothing is. The user's own configuration is read, because it holds the ways to passwords.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "packager/host/process.hpp"

namespace sealift::packager {

// `words` after "git"; `variables` beside its usual variables.
ProcessResult run_git(std::vector<std::string> words, std::map<std::string, std::string> variables = {});

}  // namespace sealift::packager
