// SPDX-License-Identifier: Apache-2.0
// The older JSON API of Python's package index (/pypi/NAME/json): what a project is and which files it has. Tools that
// look after environments ask it; pip and uv do not.
// Format: docs.pypi.org/api/json
#pragma once

#include <string>
#include <string_view>

#include "offline_repo/catalogue/catalogue.hpp"

namespace sealift::offline_repo {

// The highest version here: a release before a pre-release (1.0rc1), numbers as numbers. Empty without
// wheels.
std::string newest_version(const Project& project);

// A number that grows when newer bundles bring files of the project, and is never 0: seconds since 1970. Mirrors
// (bandersnatch, and Pulp by it) give up without one.
std::uint64_t serial_of(const Project& project);

// `version` must be one of the project's. `url`: the view's address, which is in the links of this format.
std::string project_api_json(const Project& project, const std::string& version, const std::string& url);

}  // namespace sealift::offline_repo
