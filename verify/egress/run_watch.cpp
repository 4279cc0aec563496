// SPDX-License-Identifier: Apache-2.0
// Watches the children of a rank one by one.
// See run_watch.hpp.
// A program that cannot be watched is run all the same and counted: then the check is NOT RUN, and no other suffers.
#include "verify/egress/run_watch.hpp"

#include "verify/egress/watch.hpp"

#include <utility>

namespace sealift::verify {

RunWatch::RunWatch(Allowed allowed) : allowed_(std::move(allowed)) {}

ChildResult RunWatch::run(const std::vector<std::string>& argv, const std::vector<Variable>& variables,
                          std::chrono::seconds limit, const std::filesystem::path& folder,
                          const std::function<bool()>& kill_when) {
  if (seen_.is_null()) {
    seen_ = {{"programs", 0},
             {"unwatched", 0},
             {"why", ""},
             {"calls", 0},
             {"io_uring", 0},
             {"left", nlohmann::json::array()},
             {"attempts", nlohmann::json::array()}};
  }
  auto result = observe(argv, variables, limit, folder, allowed_, kill_when);
  seen_["programs"] = seen_["programs"].get<std::int64_t>() + 1;
  seen_["calls"] = seen_["calls"].get<std::int64_t>() + result.calls;
  seen_["io_uring"] = seen_["io_uring"].get<std::int64_t>() + result.io_uring;
  for (const auto& command : result.left) seen_["left"].push_back(command);
  for (auto& attempt : attempts_json(result.attempts)) seen_["attempts"].push_back(std::move(attempt));
  if (result.fault.empty()) return result.child;
  seen_["unwatched"] = seen_["unwatched"].get<std::int64_t>() + 1;
  seen_["why"] = result.fault;
  return result.started ? result.child : run_child(argv, variables, limit, folder, kill_when);
}

nlohmann::json RunWatch::take() {
  return std::exchange(seen_, nullptr);
}

Allowed allowed_in_run(const Site& site, const std::vector<std::string>& addresses,
                       const std::vector<std::string>& hosts) {
  const auto entries =
      site.expected.value("egress", nlohmann::json::object()).value("allowed", std::vector<std::string>());
  auto names = hosts;
  names.push_back(site.master_addr);
  return {entries, addresses, site.hostname, names};
}

}  // namespace sealift::verify
