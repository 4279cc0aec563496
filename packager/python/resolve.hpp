// SPDX-License-Identifier: Apache-2.0
// Which packages a job needs: asked of uv for the target, never for this machine. uv is the resolver; here is only how
// it is asked, and the refusal of what it cannot find.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "packager/job/job.hpp"
#include "packager/python/requirement_hashes.hpp"

namespace sealift::packager {

// --uv, else $SEALIFT_UV, else PATH; throws Missing.
std::filesystem::path find_uv(const std::filesystem::path& given);

struct Resolution {
  std::string pylock;        // the text of pylock.toml; relative paths in it are relative to the folder asked for
  RequirementHashes hashes;  // what the job's own files demand
};

// `python` is any interpreter of the target's version, which uv wants to be told; `folder` is where the pylock will
// lie. Throws Network when uv cannot reach its index or finds no solution, Platform listing every package that has no
// wheel at all when the job allows no builds.
Resolution resolve(const Job& job, const std::filesystem::path& uv, const std::filesystem::path& python,
                   const std::filesystem::path& folder);

// Package -> who needs it, up to the job (need_chains.hpp), as far as uv tells; for messages.
std::map<std::string, std::string> who_needs(const Job& job, const std::filesystem::path& uv,
                                             const std::filesystem::path& python);

}  // namespace sealift::packager
