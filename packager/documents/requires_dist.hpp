// SPDX-License-Identifier: Apache-2.0
// What wheels ask of each other: a Requires-Dist as a value, and the lines that all of them draw between the wheels of
// one bundle, those through extras included. `wheel_facts` reads with it, the SBOM draws with it.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace sealift::packager {

struct WheelRequirement {
  std::string project;           // normalized, as extras are
  std::set<std::string> extras;  // asked of that project
  std::set<std::string> if_any;  // of the own extras, one of which has to be asked for; empty: needed always

  bool operator==(const WheelRequirement&) const = default;
};

// Empty `project` where the text names none.
WheelRequirement read_requirement(std::string_view text);

// Project -> what it asks for. Lines of an extra are drawn where another of these projects, or the same, asks for it.
using Requirements = std::map<std::string, std::vector<WheelRequirement>>;
std::map<std::string, std::set<std::string>> needed_projects(const Requirements& requirements);

}  // namespace sealift::packager
