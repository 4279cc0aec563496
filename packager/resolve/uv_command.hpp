// SPDX-License-Identifier: Apache-2.0
// The words and files by which uv is asked for a job's packages. Every question to uv about them is made here, so that
// each is for the target, asks the job's indexes alone, and has no login of a repository and no Python that runs
// anything (uv_python.hpp).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "packager/host/git_login.hpp"
#include "packager/job/job.hpp"
#include "packager/resolve/requirement_hashes.hpp"
#include "packager/resolve/source_facts.hpp"
#include "packager/resolve/uv_python.hpp"

namespace sealift::packager {

// `uv pip compile` for the job, without the format of its answer; the files that it reads are in `scratch`.
std::vector<std::string> compile_command(const Job& job, const std::filesystem::path& uv, const UvPython& python,
                                         const std::filesystem::path& scratch, RequirementHashes* hashes,
                                         GitLogins& logins);

// The command with what is known of sources by now. With builds uv takes the releases that it would take for anybody,
// and stops at a source of which it has to know more; without, it takes what has wheels.
std::vector<std::string> with_facts(std::vector<std::string> command, const Job& job, const SourceFacts& facts,
                                    const std::filesystem::path& scratch, GitLogins& logins);

// `uv pip compile` for this one release as a source, from the job's indexes; the answer goes to `answer`.
std::vector<std::string> source_command(const Job& job, const std::filesystem::path& uv, const UvPython& python,
                                        const std::filesystem::path& scratch, const std::string& name,
                                        const std::string& version, const std::filesystem::path& answer);

// `uv pip compile` for each one's newest release for the target, whatever anything requires.
std::vector<std::string> newest_command(const Job& job, const std::filesystem::path& uv, const UvPython& python,
                                        const std::filesystem::path& scratch, const std::vector<std::string>& names,
                                        const std::filesystem::path& answer);

}  // namespace sealift::packager
