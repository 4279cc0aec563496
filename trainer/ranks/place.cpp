// SPDX-License-Identifier: Apache-2.0
// A rank's place in the world.
// See place.hpp. Everything that may be refused is refused before ranks meet.
// Results are made comparable before the first computation, whatever the verb.
#include "trainer/ranks/place.hpp"

#include "trainer/failure.hpp"
#include "trainer/json_numbers.hpp"
#include "trainer/monitor/step_log.hpp"
#include "trainer/own_bundle.hpp"
#include "trainer/ranks/enough_limits.hpp"
#include "trainer/ranks/patient_save.hpp"

namespace sealift::trainer {

std::function<void(const std::string&)> say_as(const train::Launch& launch) {
  if (launch.local_rank > 0) return {};
  return [rank = launch.rank](const std::string& line) { say("rank " + std::to_string(rank) + ": " + line); };
}

Monitor::Place Place::watched(std::int64_t micro_batches) const {
  return {.rank = rank,
          .world_size = world_size,
          .device = device.device,
          .policy = policy,
          .micro_batches = micro_batches};
}

Rank rank_of(const HostOptions& options, const train::Launch& launch) {
  Rank mine{.device = set_up_device(options.device, launch), .rank = launch.rank, .world_size = launch.world_size};
  compute_reproducibly(mine.device);
  return mine;
}

Place place_in_world(const Rank& rank, const train::Policy& policy) {
  return {rank, policy, train::make_mesh(policy, rank.world_size)};
}

train::World find_ranks(const Rank& rank, const HostOptions& options, const train::Launch& launch) {
  require_files(files_needed(launch.world_size));
  require_threads(threads_needed(1, std::max<std::int64_t>(1, options.threads)));
  if (rank.is_first()) std::cerr << rank.device.line << '\n';
  auto ranks = train::connect(launch, std::chrono::seconds(options.timeout_seconds), say_as(launch));
  ranks.device = rank.device.device;
  at::set_num_threads(
      static_cast<int>(options.threads > 0 ? options.threads : train::host::threads_of(ranks.processors)));
  check_devices(rank.device, launch, ranks, shares_devices_for_tests());
  return ranks;
}

train::Groups make_groups(const Place& place, const train::World& ranks, const FurtherAxis& axis) {
  return axis.ranks > 1 ? train::make_groups(ranks, place.policy, axis.name, axis.ranks)
                        : train::make_groups(ranks, place.mesh);
}

void write_result(nlohmann::ordered_json& result, Monitor& monitor, const Place& place, const HostOptions& options,
                  train::Groups& world) {
  result["monitor"] = monitor.report(world.world);
  if (place.is_first()) {
    result["bundle"] = own_bundle();
    result["reshard_after_forward"] = place.policy.reshard_after_forward;
  }
  const auto text = with_all_numbers(result).dump(1) + "\n";
  const auto write = [&] {
    train::detail::all_saved(world.world, "saving result.json", [&]() -> std::string {
      if (place.is_first()) write_whole(std::filesystem::path(options.out) / "result.json", text);
      return "";
    });
  };
  if (!result.contains("ended_by")) return save_with_patience(place.is_first(), write);
  try {
    write();
  } catch (const train::SaveFailed& error) {  // who told it to end does not wait
    if (place.is_first()) say(c10::str("the result of this unfinished run is not written: ", text_of(error)));
  }
}

void print_advice(const Place& place, const train::Parallel& parallel, std::int64_t micro_batches) {
  if (!place.is_first()) return;
  std::map<std::string, std::vector<std::string>> by_remedy;
  for (const auto& warning : parallel.warnings()) by_remedy[warning.substr(warning.rfind(';') + 1)].push_back(warning);
  if (place.mesh.shard == 1) by_remedy.clear();
  for (const auto& [remedy, warnings] : by_remedy) {
    std::cerr << "note: " << warnings.front();
    if (warnings.size() > 1) std::cerr << "; and " << warnings.size() - 1 << " more such";
    std::cerr << '\n';
  }
  if (micro_batches == 1) return;
  for (const auto& note : parallel.notes()) std::cerr << "note: " << note << '\n';
}

}  // namespace sealift::trainer
