// SPDX-License-Identifier: Apache-2.0
// [rpm] as TOML: the job file's table, and the lock's, which nothing else writes or reads.
#pragma once

#include <filesystem>
#include <string>

#include "packager/tables/rpm.hpp"
#include "packager/tables/toml_file.hpp"

namespace sealift::packager {

// Both throw the document's fault with line and key; without the table they return no packages. Keys are relative to
// `folder`.
JobRpm read_job_rpm(TomlTable& job, const std::filesystem::path& folder);
LockedRpm read_locked_rpm(TomlTable& lock);

std::string write_locked_rpm(const LockedRpm& rpm);

// NAME-VERSION-RELEASE.ARCH.rpm, without a character that needs quoting.
bool is_rpm_name(const std::string& name);

}  // namespace sealift::packager
