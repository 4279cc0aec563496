// SPDX-License-Identifier: Apache-2.0
// What the addresses in a job's requirements leave to this machine: ${NAME}, and logins. uv gets those variables and no
// others; the lock gets the names and the files, so that `create` can ask the same servers, and none of the values.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "packager/job/job.hpp"

namespace sealift::packager {

// NAME -> value, of each ${NAME} in requirements, constraints and requirements files that is set here.
std::map<std::string, std::string> input_variables(const Job& job);

// Without unset ones: uv takes the text as it stands.
std::vector<std::string> unset_input_variables(const Job& job);

// `indexes` with what requirements files name: their indexes, the files that hold logins, and the addresses with
// ${NAME} outside of a login, each up to its last one.
LockedIndexes with_inputs(LockedIndexes indexes, const Job& job);

}  // namespace sealift::packager
