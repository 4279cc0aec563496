// SPDX-License-Identifier: Apache-2.0
// What uv is given of a job, without the logins of repositories, and without the "-e" before one, which uv refuses: uv
// starts git by itself, with addresses as they stand. Between the job and `resolve`; git_login.hpp tells how git gets
// the logins.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "packager/host/git_login.hpp"

namespace sealift::packager {

std::vector<std::string> lines_without_logins(const std::vector<std::string>& lines, const std::string& where,
                                              GitLogins& logins);

// A requirements file as uv may see it: itself, or, where a repository in it or in an included one is editable
// or its address holds a login, a copy in `scratch` without that. The logins go to `logins`, which throws for malformed
// ones.
std::filesystem::path file_without_logins(const std::filesystem::path& file, const std::filesystem::path& scratch,
                                          GitLogins& logins);

// uv reads a project where it lies: throws Usage when an address of a repository in it holds a login.
void refuse_logins_in(const std::filesystem::path& pyproject);

}  // namespace sealift::packager
