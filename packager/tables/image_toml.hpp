// SPDX-License-Identifier: Apache-2.0
// [[image]] as TOML: the job file's tables, and the lock's, which nothing else writes or reads.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "packager/tables/image.hpp"
#include "packager/tables/toml_file.hpp"

namespace sealift::packager {

// For a job file in `folder`. Throws the document's fault with line and key.
std::vector<JobImage> read_job_images(TomlTable& job, const std::filesystem::path& folder);

std::vector<LockedImage> read_locked_images(TomlTable& lock);
std::string write_locked_images(const std::vector<LockedImage>& images);

}  // namespace sealift::packager
