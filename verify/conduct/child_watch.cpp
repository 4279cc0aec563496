// SPDX-License-Identifier: Apache-2.0
// Runs a child for a site.
// See child_watch.hpp.
// One place decides whether a child is watched, so that no check forgets it.
#include "verify/conduct/child_watch.hpp"

namespace sealift::verify {

ChildResult run_for(const Site& site, const std::vector<std::string>& argv, const std::vector<Variable>& variables,
                    std::chrono::seconds limit, const std::function<bool()>& kill_when) {
  if (site.watch) return site.watch->run(argv, variables, limit, site.work, kill_when);
  return run_child(argv, variables, limit, site.work, kill_when);
}

}  // namespace sealift::verify
