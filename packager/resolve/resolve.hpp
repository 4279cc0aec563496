// SPDX-License-Identifier: Apache-2.0
// Resolves a job's packages with uv, for the target and never for this machine. uv is the resolver; this file only
// calls it and reports what it cannot find.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "packager/host/git_login.hpp"
#include "packager/job/job.hpp"
#include "packager/resolve/pylock.hpp"
#include "packager/resolve/requirement_hashes.hpp"
#include "packager/resolve/source_facts.hpp"
#include "packager/resolve/uv_python.hpp"
#include "packager/resolve/uv_said.hpp"

namespace sealift::packager {

// --uv, else $SEALIFT_UV, else PATH; throws Missing.
std::filesystem::path find_uv(const std::filesystem::path& given);

struct Resolution {
  std::optional<SourceQuestion> question;  // uv has no answer yet: it has to know what this source requires
  std::optional<std::string> unread;       // or: it cannot read the wheel at this address
  std::string pylock;                      // else the text of pylock.toml, with paths relative to `folder`
  std::vector<std::string> warnings;       // uv's
  RequirementHashes hashes;                // demanded by the job's own files
  GitLogins logins;                        // of the repositories that the job names; uv saw none of them
};

// `folder` is where the pylock will be written. The versions are uv's choice for anybody who allows builds;
// uv runs no code of a package for that: of sources it goes by what they publish, by `facts`, and else it has a
// question. With build = false it prefers versions that have a wheel. Throws what uv_refusal.hpp makes of uv's words,
// Platform listing every package that has no wheel at all when the job allows no builds.
// What the job names directly (a folder, a repository) and only a build can tell of is added to facts.direct.
Resolution resolve(const Job& job, const std::filesystem::path& uv, const UvPython& python,
                   const std::filesystem::path& folder, SourceFacts& facts);

// Where the indexes have the source that uv asks about. Throws as resolve.
SourcePackage find_source(const Job& job, const std::filesystem::path& uv, const UvPython& python,
                          const std::filesystem::path& folder, const SourceQuestion& question, const GitLogins& logins);

// Package -> who needs it, up to the job (need_chains.hpp), for messages; empty when uv fails.
std::map<std::string, std::string> who_needs(const Job& job, const std::filesystem::path& uv, const UvPython& python,
                                             const SourceFacts& facts);

}  // namespace sealift::packager
