// SPDX-License-Identifier: Apache-2.0
// Dependencies between wheels: one Requires-Dist as a value, and the graph that all of them make within a bundle,
// dependencies of extras included. `wheel_facts` reads the values, the SBOM lists the graph.
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
  std::set<std::string> if_any;  // its own extras, of which one must be asked for; empty: always needed

  bool operator==(const WheelRequirement&) const = default;
};

// Empty `project` where the text names none.
WheelRequirement read_requirement(std::string_view text);

// Project -> what it requires. What only an extra requires counts where another of these projects, or the same one,
// asks for that extra.
using Requirements = std::map<std::string, std::vector<WheelRequirement>>;
std::map<std::string, std::set<std::string>> needed_projects(const Requirements& requirements);

}  // namespace sealift::packager
