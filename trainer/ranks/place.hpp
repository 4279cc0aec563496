// SPDX-License-Identifier: Apache-2.0
// What this rank is: its device; in a job, its policy and mesh; and how it meets the other ranks.
// First in every verb that trains; `Place` is read by all that follows.
// The connections are the caller's, so that they live until an error is reported.
#pragma once

#include "trainer/monitor/monitor.hpp"
#include "trainer/ranks/device.hpp"
#include "trainer/settings/job_options.hpp"

#include <optional>

namespace sealift::trainer {

/// This rank on its host, whatever the job: which it is, its device.
struct Rank {
  RankDevice device;
  std::int64_t rank = 0, world_size = 1;

  bool is_first() const { return rank == 0; }
};

/// What it does of the job.
struct Place : Rank {
  train::Policy policy;
  train::Mesh mesh;

  /// The same for the monitor, of a job with so many micro-batches in a step.
  Monitor::Place watched(std::int64_t micro_batches) const;
};

/// Chooses and sets up the device; touches no other rank.
Rank rank_of(const HostOptions& options, const train::Launch& launch);

/// The place of `rank` by `policy`, which is whole: nothing of it is changed later. Throws where there is no such mesh.
Place place_in_world(const Rank& rank, const train::Policy& policy);

/// An axis of the mesh beside the core's two: the ranks along it, neighbours of the ranks that share the model.
struct FurtherAxis {
  std::string name;
  std::int64_t ranks = 1;
};

/// What says a line of a rank that waits; null for all but one rank of a host, which wait for the same.
std::function<void(const std::string&)> say_as(const train::Launch& launch);

/// Meets the other ranks. Sets this process's threads, by its share of the host's processors where `options` leave them
/// open. Collective.
train::World find_ranks(const Rank& rank, const HostOptions& options, const train::Launch& launch);

/// The groups of `place.mesh`, where `axis` has more than one rank with it. Collective.
train::Groups make_groups(const Place& place, const train::World& ranks, const FurtherAxis& axis = {});

/// Adds the monitor's part to `result`; rank 0 adds the bundle that it ran in, and writes it as OUT/result.json. All
/// ranks leave together. Collective.
void write_result(nlohmann::ordered_json& result, Monitor& monitor, const Place& place, const HostOptions& options,
                  train::Groups& world);

/// Prints the core's advice: of several warnings with one remedy, the first; and with `micro_batches` above 1 what was
/// chosen for them.
void print_advice(const Place& place, const train::Parallel& parallel, std::int64_t micro_batches);

}  // namespace sealift::trainer
