// SPDX-License-Identifier: Apache-2.0
// `sealift-install preflight`: asks everything that apply asks before its first write, and prints every row, good or
// bad. Takes no lock and changes nothing, so it can be run while a prefix is in use.
#pragma once

#include "installer/verbs/apply.hpp"
#include "bundle/core/json.hpp"

namespace sealift::installer {

struct PreflightRun {
  std::string name;
  std::uint64_t version = 0;
  std::string prefix;
  std::vector<std::string> warnings;  // of the verification
  std::vector<Finding> findings;
};

// Throws what apply would throw before its preflight: a bundle that cannot be verified.
PreflightRun run_preflight(const ApplyOptions& options, const Disk& disk);

bundle::Json json_of(const PreflightRun& result);
std::string text_of(const PreflightRun& result);
// 0, or the code of the first Fail.
int exit_code_of(const PreflightRun& result);

}  // namespace sealift::installer
