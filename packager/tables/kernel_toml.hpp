// SPDX-License-Identifier: Apache-2.0
// [[kernel]] as TOML: the job file's tables, and the lock's, which nothing else writes or reads.
#pragma once

#include <string>
#include <vector>

#include "packager/tables/kernel.hpp"
#include "packager/tables/toml_file.hpp"

namespace sealift::packager {

// For a job file. Throws the document's fault with line and key.
std::vector<ModelSpec> read_job_kernels(TomlTable& job);

std::vector<LockedKernel> read_locked_kernels(TomlTable& lock);
std::string write_locked_kernels(const std::vector<LockedKernel>& kernels);

}  // namespace sealift::packager
