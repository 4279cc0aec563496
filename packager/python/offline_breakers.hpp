// SPDX-License-Identifier: Apache-2.0
// A maintained table of packages that fail, or work badly, on a machine without internet although they are complete:
// they download or call home when they are imported or used, or compile when they run. `lock` and `create` consult it;
// its findings are advice, and nothing is refused because of them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "bundle/core/json.hpp"
#include "packager/lock/lock.hpp"
#include "sealift/bundle/host/progress.hpp"

namespace sealift::packager {

struct OfflineFinding {
  std::string package;  // "triton 3.6.0"
  std::string problem;
  std::string remedy;
  std::vector<std::string> settings;  // "NAME=VALUE" for the environment of the programs inside
  std::string needed_by = {};         // "modelscope, for ms-swift, for the job"; empty: not looked up
};

// In the order of the packages' names.
std::vector<OfflineFinding> offline_findings(const std::vector<LockedWheel>& wheels);

// Fills in needed_by; `needs` is package -> who needs it.
void add_needs(std::vector<OfflineFinding>& findings, const std::map<std::string, std::string>& needs);

// Every setting of the findings once, sorted.
std::vector<std::string> offline_settings(const std::vector<OfflineFinding>& findings);

// A warning for each finding.
void show_findings(const std::vector<OfflineFinding>& findings, bundle::Progress& progress);

bundle::Json findings_json(const std::vector<OfflineFinding>& findings);

}  // namespace sealift::packager
