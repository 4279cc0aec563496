// SPDX-License-Identifier: Apache-2.0
// The story of `sealift-install preflight`: every check that apply makes before its first write, passed or not. Takes
// no prefix lock and changes nothing, so it can run while the prefix is in use.
#pragma once

#include <optional>

#include "installer/preflight/preflight.hpp"

namespace sealift::installer {

struct PreflightOptions {
  std::filesystem::path bundle;
  Prefix prefix;
  std::optional<bundle::Digest> fingerprint;  // of the trust root to begin from, where none is pinned
  bool allow_downgrade = false;
  bool sandboxed_builds_only = false;
  bundle::Time now = bundle::system_time();
  Machine machine;
  bool compile_bytecode = false;
};

struct PreflightRun {
  std::string name;
  std::uint64_t version = 0;
  std::string prefix;
  std::vector<std::string> warnings;  // of the verification
  std::vector<Finding> findings;
};

// Throws what apply would throw before its preflight: a bundle that cannot be verified.
PreflightRun run_preflight(const PreflightOptions& options, const Disk& disk);

// 0, or the error code of the first Fail.
int exit_code_of(const PreflightRun& result);

}  // namespace sealift::installer
