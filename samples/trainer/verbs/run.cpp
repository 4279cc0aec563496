// SPDX-License-Identifier: Apache-2.0
// `sealift-train run`: settings in; this process becomes one rank, or starts the ranks of its host; a result out.
// See run.hpp for the training and local_ranks.hpp for the start of ranks.
// A rank that fails tells the others while it is still connected, so that any one of their logs says whose fault it
// was.
#include "run.hpp"

#include "failure.hpp"
#include "job_policy.hpp"
#include "local_ranks.hpp"
#include "monitor/monitor.hpp"
#include "verbs/verbs.hpp"

namespace sealift::trainer {
namespace {

struct Arguments {
  Texts flags;
  std::string config_file;
  std::int64_t ranks = 0;
  bool json = false;
};

void print(const nlohmann::ordered_json& result, bool json) {
  if (json) {
    std::cout << result.dump(1) << '\n';
    return;
  }
  std::cout << result["parallel_method"].get<std::string>() << " x" << result["world_size"] << ": loss "
            << result["final_loss"].get<double>() << " after " << result["steps"] << " steps, floor "
            << result["entropy_floor"].get<double>() << ", " << result["verdict"].get<std::string>() << "; "
            << cost_line(result["monitor"]) << '\n';
}

/// The host whose ranks this process must start; nothing when it is a rank itself. `ranks`: what --ranks says, or 0.
std::optional<train::Launch> host_to_start(const train::Launch& launch, std::int64_t ranks) {
  if (ranks > 1 && launch.world_size == 1) return on_this_host(ranks);
  if (ranks > 0 && ranks != launch.local_world_size) {
    throw std::invalid_argument("--ranks " + std::to_string(ranks) + " inside a launch with " +
                                std::to_string(launch.local_world_size) + " ranks on this host; leave --ranks out");
  }
  return launch.is_node ? std::optional(launch) : std::nullopt;
}

/// Trains as one rank. Ends the process if that fails: leaving the scope first could block on the connections.
nlohmann::ordered_json run_as_rank(const Options& options, const train::Launch& launch) {
  std::optional<train::Groups> world;
  try {
    return run(options, launch, world);
  } catch (const std::exception& error) {
    const auto text = text_of(error);
    const auto rank = launch.world_size > 1 ? "rank " + std::to_string(launch.rank) : "";
    const bool names_it = rank.empty() || text.starts_with(rank + " ");  // errors of collectives do
    say((names_it ? "" : rank + ": ") + text);
    if (world) world->report_failure(text);
    std::_Exit(exit_code_of(error));
  }
}

}  // namespace

void add_run(CLI::App& app, char** argv) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* verb = app.add_subcommand("run", "train and write OUT/log.jsonl and OUT/result.json");
  verb->add_option("--config", arguments->config_file, "TOML file of the settings below, names with underscores");
  verb->add_option("--ranks", arguments->ranks,
                   "start this many ranks on this host; without: as the launcher's variables say")
      ->check(CLI::Range(1, 1024));
  verb->add_flag("--json", arguments->json, "print result.json");
  for (const auto& setting : settings()) {
    verb->add_option_function<std::string>(
        setting.flag(), [arguments, name = setting.name](const std::string& text) { arguments->flags[name] = text; },
        setting.help + " [" + setting.variable() + "]");
  }
  verb->callback([arguments, argv] {
    const auto options = read_options(arguments->flags, arguments->config_file);
    make_policy(options);  // settings that contradict each other are refused once, not by each rank
    const auto launch = train::parse_launch();
    if (const auto host = host_to_start(launch, arguments->ranks)) {
      if (const int code = run_local_ranks(*host, argv)) throw CLI::RuntimeError(code);
      return;
    }
    if (launch.rank == 0) say(launch.source);
    const auto result = run_as_rank(options, launch);
    if (launch.rank == 0) print(result, arguments->json);
  });
}

}  // namespace sealift::trainer
