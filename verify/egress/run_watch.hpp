// SPDX-License-Identifier: Apache-2.0
// The watch over all programs that the checks of a run start: `run` makes one on each rank, egress.run judges it.
// Above run_watched; a ChildWatch of the site.
// It lets calls go on and writes them down: a check must train as the site trains, also where nothing may be seen.
#pragma once

#include "verify/conduct/child_watch.hpp"
#include "verify/egress/destination.hpp"

namespace sealift::verify {

class RunWatch : public ChildWatch {
 public:
  explicit RunWatch(Allowed allowed);

  ChildResult run(const std::vector<std::string>& argv, const std::vector<Variable>& variables,
                  std::chrono::seconds limit, const std::filesystem::path& folder,
                  const std::function<bool()>& kill_when) override;
  nlohmann::json take() override;

 private:
  Allowed allowed_;
  nlohmann::json seen_;
};

/// What the programs of a run may reach: [egress] allowed of site.toml, and the hosts of the run, by the addresses and
/// names that they give.
Allowed allowed_in_run(const Site& site, const std::vector<std::string>& addresses,
                       const std::vector<std::string>& hosts);

}  // namespace sealift::verify
