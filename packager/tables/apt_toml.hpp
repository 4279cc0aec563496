// SPDX-License-Identifier: Apache-2.0
// [apt] as TOML: the job file's table, and the lock's, which nothing else writes or reads.
#pragma once

#include <string>

#include "packager/tables/apt.hpp"
#include "packager/tables/toml_file.hpp"

namespace sealift::packager {

// Both throw the document's fault with line and key; without the table they return no packages.
JobApt read_job_apt(TomlTable& job);
LockedApt read_locked_apt(TomlTable& lock);

std::string write_locked_apt(const LockedApt& apt);

// NAME_VERSION_ARCH.deb as in Debian's archives, without a character that needs quoting.
bool is_deb_name(const std::string& name);

}  // namespace sealift::packager
