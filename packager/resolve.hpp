// SPDX-License-Identifier: Apache-2.0
// Which wheels a job needs: asked of uv for the target, never for this machine, and read from the pylock it writes.
// uv is the resolver; here is only the choice of one wheel per package and the refusal of what has none.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "packager/job.hpp"
#include "packager/lock.hpp"

namespace sealift::packager {

// --uv, else $SEALIFT_UV, else PATH; throws Missing.
std::filesystem::path find_uv(const std::filesystem::path& given);

// The text of pylock.toml. `python` is any interpreter, which uv wants to be told. Throws Network when uv cannot
// reach its index or finds no solution, Platform listing every package that has no wheel at all.
std::string resolve(const Job& job, const std::filesystem::path& uv, const std::filesystem::path& python);

// One wheel for each package of a pylock, sorted by file name. Throws Platform listing every package without a wheel
// for the target, Conflict for a package that stands twice. `where` is what relative paths in it are relative to.
std::vector<LockedWheel> choose_wheels(std::string_view pylock, const std::filesystem::path& where,
                                       std::string_view python, const bundle::Target& target);

}  // namespace sealift::packager
