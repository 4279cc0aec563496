// SPDX-License-Identifier: Apache-2.0
// One process becomes a rank, or starts the ranks of its host.
// See on_ranks.hpp; local_ranks.hpp starts processes.
// Any one of the ranks' logs says whose fault it was.
#include "trainer/ranks/on_ranks.hpp"

#include "trainer/failure.hpp"
#include "trainer/ranks/local_ranks.hpp"

namespace sealift::trainer {
namespace {

/// The host whose ranks this process must start; nothing when it is a rank itself. `ranks`: what --ranks says, or 0.
std::optional<train::Launch> host_to_start(const train::Launch& launch, std::int64_t ranks) {
  if (ranks > 1 && launch.world_size == 1) return on_this_host(ranks);
  if (ranks > 0 && ranks != launch.local_world_size) {
    throw std::invalid_argument("--ranks " + std::to_string(ranks) + " inside a launch with " +
                                std::to_string(launch.local_world_size) + " ranks on this host; leave --ranks out");
  }
  return launch.is_node ? std::optional(launch) : std::nullopt;
}

/// Ends the process if `story` fails: leaving the scope first could block on the connections.
nlohmann::ordered_json as_rank(const RankStory& story, const train::Launch& launch) {
  std::optional<train::Groups> world;
  try {
    return story(launch, world);
  } catch (const std::exception& error) {
    const auto text = text_of(error);
    const auto rank = launch.world_size > 1 ? "rank " + std::to_string(launch.rank) : "";
    const bool names_it = rank.empty() || text.starts_with(rank + " ");  // errors of collectives do
    say((names_it ? "" : rank + ": ") + text);
    if (world) world->report_failure(text);
    std::_Exit(exit_code_of(error));
  }
}

/// Of a job that did not fail: one that was ended says by what. ("finished" is a time in the verdict of a site.)
int code_of(const nlohmann::ordered_json& result) {
  if (!result.is_object() || !result.contains("ended_by")) return 0;
  return result.at("ended_by") == kByTimeLimit ? kOutOfTime : kToldToEnd;
}

}  // namespace

void add_ranks(const bundle::Verb& verb, std::int64_t& ranks) {
  verb.option("--ranks", ranks, "start this many ranks on this host; without: as the launcher's variables say")
      .between(1, 1024);
}

RanksEnd on_ranks(const RankStory& story, std::int64_t ranks, char** argv) {
  const auto launch = train::parse_launch();
  if (const auto host = host_to_start(launch, ranks)) {
    return {.code = run_local_ranks(*host, argv)};
  }
  if (launch.rank == 0) say(launch.source);
  auto result = as_rank(story, launch);
  const auto code = code_of(result);
  if (launch.rank != 0) return {.code = code};
  return {.code = code, .result = std::move(result)};
}

}  // namespace sealift::trainer
