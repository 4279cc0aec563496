// SPDX-License-Identifier: Apache-2.0
// One training job of the carried sealift-train, run by the ranks of the site or by one process, and what it computed.
// Beneath the checks of this room: each compares two or more such jobs.
// A child process and not a call, so that the installed program is what is judged, and its end is not this one's.
#pragma once

#include "verify/conduct/check_kind.hpp"
#include "verify/conduct/child.hpp"

#include <map>

namespace sealift::verify {

/// What to train. The settings are sealift-train's, by name.
struct TrainingJob {
  std::string name;  ///< of its folder below `site.work`, and in pictures
  std::string verb = "run";
  std::map<std::string, std::string> settings = {};
};

enum class Crew {
  One,      ///< one process on rank 0; other ranks return at once
  OfFirst,  ///< `local_ranks` that rank 0 starts on its host; other ranks return at once
  World     ///< every rank of the site; in a world of one on a CPU, two local ranks
};

struct HowToRun {
  Crew crew = Crew::World;
  std::size_t port = 0;                  ///< which of `site.free_ports`; each job of one check needs its own
  std::int64_t local_ranks = 2;          ///< of Crew::OfFirst, and in a world of one on a CPU
  std::function<bool()> kill_when = {};  ///< asked every 10 ms on every rank; then its process is killed
};

/// The ranks that a job of Crew::World has here.
std::int64_t crew_size(const Site& site, std::int64_t local_ranks = 2);

/// Runs `job`. An object: on the rank that gets a result `ranks`, `result` (result.json) and `norms` (a gradient norm
/// for each step); where the child failed `code` and `failed`, what it said last; else empty. Throws NotRun where the
/// prefix has no sealift-train.
nlohmann::json run_job(const Site& site, const TrainingJob& job, const HowToRun& how);

/// Throws NotRun when one rank of a GPU is all there is, so that ranks cannot be compared.
void need_ranks(const Site& site);

/// Variables of launchers and of sealift-train that would change a child's job: all removed.
std::vector<Variable> without_launcher();

/// `device` of sealift-train for this rank: "cpu" or "cuda".
std::string device_kind(const Site& site);

}  // namespace sealift::verify
