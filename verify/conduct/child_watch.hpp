// SPDX-License-Identifier: Apache-2.0
// How a run watches every program that its checks start: a check runs its child for the site, and the site may watch.
// Between run_child and the room egress, which has the watch itself.
// An interface, so that rooms that start programs know nothing of how they are watched.
#pragma once

#include "verify/conduct/child.hpp"
#include "verify/conduct/site.hpp"

namespace sealift::verify {

struct ChildWatch {
  virtual ~ChildWatch() = default;

  /// run_child, watched.
  virtual ChildResult run(const std::vector<std::string>& argv, const std::vector<Variable>& variables,
                          std::chrono::seconds limit, const std::filesystem::path& folder,
                          const std::function<bool()>& kill_when) = 0;

  /// What was seen since the last call: `programs`, `unwatched`, `why` (of those), `calls`, `attempts`, `io_uring` and
  /// `left` (of WatchedResult); null: nothing was started.
  virtual nlohmann::json take() = 0;
};

/// run_child in `site.work`, watched where the site has a watch.
ChildResult run_for(const Site& site, const std::vector<std::string>& argv, const std::vector<Variable>& variables,
                    std::chrono::seconds limit, const std::function<bool()>& kill_when = {});

}  // namespace sealift::verify
