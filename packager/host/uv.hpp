// SPDX-License-Identifier: Apache-2.0
// uv as every step calls it: it fetches no Python, reads no configuration of folders, users or systems, gets no
// variable but the named ones here, and trusts the certificates that our own downloads trust. What decides which
// packages are taken stands in the job.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "packager/host/process.hpp"

namespace sealift::packager {

// The first word is the program itself; the rest is completed with --no-config. `more` are further variables. What uv
// says on its error output comes back without the logins of addresses.
ProcessResult run_uv(std::vector<std::string> command, const std::map<std::string, std::string>& more = {},
                     const Watch& watch = {});

// What `keyring` needs to find its own store, where UV_KEYRING_PROVIDER says that it is to be asked.
std::map<std::string, std::string> keyring_variables();

// The variables of uv that are set here and are not passed on, although they would change what is resolved; for a
// warning.
std::vector<std::string> ignored_uv_variables();

}  // namespace sealift::packager
