// SPDX-License-Identifier: Apache-2.0
// Runs collectives on this rank: what came is compared with what must come, and the time is taken.
// The measuring half of this room's checks; `judge` reads what it returns.
// Through train::Collectives, the door that training uses, so its compositions are checked with the engines below.
#pragma once

#include <sealift/train.hpp>

#include <nlohmann/json.hpp>

namespace sealift::verify {

/// What a test puts into a rank: called with the collective's name, and what this rank sends or has received. It may
/// change the data or sleep. Production has none.
struct CommunicationFaults {
  std::function<void(const std::string& op, const at::Tensor& sent)> before;
  std::function<void(const std::string& op, const at::Tensor& received)> after;
};

/// A group over which collectives are checked.
struct Line {
  std::string name;  ///< "world", or an axis
  train::Collectives group;
};

/// The world, and the axes of a mesh over it where its size divides.
struct Lines {
  train::Groups groups;  ///< keeps them alive
  std::vector<Line> all;
};

/// Makes the lines; `local`: ranks of a host. Throws NotRun in a world of one. Collective.
Lines make_lines(const train::Groups& world, std::int64_t local);

/// [[name, value]]: the engine, the mesh, and what chooses transports. Facts of the report.
nlohmann::json facts_of_lines(const Lines& lines);

/// Every collective x dtype x number of elements over each line, and the barrier. What `judge_right` takes. Collective.
nlohmann::json measure_right(const Lines& lines, const std::vector<std::int64_t>& sizes,
                             const CommunicationFaults& faults = {});

/// The same again and again, for `duration` by rank 0's clock. Collective.
nlohmann::json measure_right_for(const Lines& lines, const std::vector<std::int64_t>& sizes,
                                 std::chrono::duration<double> duration, const CommunicationFaults& faults = {});

/// Times of every collective over each line for each of `bytes`. What `judge_bandwidth` takes. Collective.
nlohmann::json measure_bandwidth(const Lines& lines, const std::vector<std::int64_t>& bytes,
                                 const CommunicationFaults& faults = {});

/// `bytes` both ways between the first ranks of hosts (`host`: this rank's, as Site::host), on one host between up to
/// 16 ranks, in rounds of pairs that have nobody in common; rounds with a slow pair are repeated. What `judge_pairs`
/// takes. Collective.
nlohmann::json measure_pairs(const Lines& lines, const std::string& host, std::int64_t bytes,
                             const CommunicationFaults& faults = {});

}  // namespace sealift::verify
