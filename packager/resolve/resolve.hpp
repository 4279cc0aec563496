// SPDX-License-Identifier: Apache-2.0
// Resolves a job's packages with uv, for the target and never for this machine. uv is the resolver; this file only
// calls it and reports what it cannot find.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "packager/host/git_login.hpp"
#include "packager/job/job.hpp"
#include "packager/resolve/requirement_hashes.hpp"
#include "packager/resolve/source_facts.hpp"

namespace sealift::packager {

// --uv, else $SEALIFT_UV, else PATH; throws Missing.
std::filesystem::path find_uv(const std::filesystem::path& given);

struct Resolution {
  std::string pylock;        // the text of pylock.toml, with paths relative to `folder`
  RequirementHashes hashes;  // demanded by the job's own files
  GitLogins logins;          // of the repositories that the job names; uv saw none of them
};

// `python` is any interpreter of the target's version, because uv must be given one; `folder` is where the pylock will
// be written. Throws what uv_refusal.hpp makes of uv's words, Platform listing every package that has no wheel at all
// when the job allows no builds.
// uv runs no code of a package: it prefers versions that have a wheel, and goes by `facts` for the others, whose names
// are added to it.
Resolution resolve(const Job& job, const std::filesystem::path& uv, const std::filesystem::path& python,
                   const std::filesystem::path& folder, SourceFacts& facts);

// Package -> who needs it, up to the job (need_chains.hpp), for messages; empty when uv fails.
std::map<std::string, std::string> who_needs(const Job& job, const std::filesystem::path& uv,
                                             const std::filesystem::path& python, const SourceFacts& facts);

}  // namespace sealift::packager
