// SPDX-License-Identifier: Apache-2.0
// [[model]] and [[data]] as TOML: the job file's tables, and the lock's, which nothing else writes or reads.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "packager/tables/model.hpp"
#include "packager/tables/toml_file.hpp"

namespace sealift::packager {

// For a job file in `folder`. Throws the document's fault with line and key.
std::vector<JobModel> read_job_models(TomlTable& job, const std::filesystem::path& folder);

// For a lock in `folder`; source folders are written relative to it.
std::vector<LockedModel> read_locked_models(TomlTable& lock, const std::filesystem::path& folder);
std::string write_locked_models(const std::vector<LockedModel>& models, const std::filesystem::path& folder);

// Parts of these tables that others have too: repo, revision and endpoint of a repository of Hugging Face's kind, and a
// lock's files, sorted by path.
void read_repository(TomlTable& table, ModelSpec& spec);
std::vector<LockedFile> read_locked_files(TomlTable& table);
std::string write_locked_files(const std::vector<LockedFile>& files);

}  // namespace sealift::packager
