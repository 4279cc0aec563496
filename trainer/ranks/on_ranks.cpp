// SPDX-License-Identifier: Apache-2.0
// One process becomes a rank, or starts the ranks of its host.
// See on_ranks.hpp; local_ranks.hpp starts processes.
// Any one of the ranks' logs says whose fault it was.
#include "trainer/ranks/on_ranks.hpp"

#include "trainer/failure.hpp"
#include "trainer/ranks/local_ranks.hpp"
#include "trainer/settings/misspelt_variables.hpp"

#include <signal.h>
#include <unistd.h>

#include <string_view>

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

/// For a job that did not fail: one that was ended says by what. ("finished" is a time in the verdict of a site.)
int code_of(const nlohmann::ordered_json& result) {
  if (!result.is_object() || !result.contains("ended_by")) return 0;
  return result.at("ended_by") == kByTimeLimit ? kOutOfTime : kToldToEnd;
}

constexpr std::string_view kLine =
    ": told to end by SIGTERM while no step was under way: ended at once, nothing to save; the same command "
    "goes on from its last checkpoint, or begins anew\n";

void say_and_end(bool alone) {
  if (!alone) {
    signal(SIGTERM, SIG_DFL);
    raise(SIGTERM);  // of no effect on a container's first process
  }
  _exit(kToldToEnd);
}

void write_line() {
  for (const std::string_view part : {std::string_view(program_invocation_short_name), kLine}) {
    [[maybe_unused]] const auto written = write(STDERR_FILENO, part.data(), part.size());
  }
}

/// From now on SIGTERM, if nothing handles it, ends this process at once: no step is under way, and while one is,
/// Endings (loop/) takes the signal over. A handler of our own, since a container's first process ignores a signal that
/// it does not handle; it may interrupt anything, so it only writes, and ends without destructors. `says`: with a line.
/// `alone`: by exit code 143; one of several ranks dies by the signal, which its parents know for a cause of its own.
void end_when_told(bool says, bool alone) {
  struct sigaction action {};
  if (sigaction(SIGTERM, nullptr, &action) == 0 && action.sa_handler != SIG_DFL) return;  // the program's own
  action = {};
  action.sa_flags = SA_NODEFER;
  action.sa_handler = says && alone ? [](int) { write_line(), say_and_end(true); }
                      : says        ? [](int) { write_line(), say_and_end(false); }
                      : alone       ? [](int) { say_and_end(true); }
                                    : [](int) { say_and_end(false); };
  sigaction(SIGTERM, &action, nullptr);
}

}  // namespace

void add_ranks(const bundle::Verb& verb, std::int64_t& ranks) {
  verb.option("--ranks", ranks, "start this many ranks on this host; without: as the launcher's variables say")
      .between(1, 1024);
}

RanksEnd on_ranks(const RankStory& story, std::int64_t ranks, char** argv) {
  refuse_misspelt_variables();
  const auto launch = train::parse_launch();
  end_when_told(launch.rank == 0, launch.world_size == 1);
  if (const auto host = host_to_start(launch, ranks)) {
    const auto end = run_local_ranks(*host, argv);
    return {.code = end.code, .failed = end.failed, .started_ranks = true};
  }
  if (launch.rank == 0) say(launch.source);
  auto result = as_rank(story, launch);
  const auto code = code_of(result);
  if (launch.rank != 0) return {.code = code};
  return {.code = code, .result = std::move(result)};
}

}  // namespace sealift::trainer
