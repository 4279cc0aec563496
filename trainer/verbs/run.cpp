// SPDX-License-Identifier: Apache-2.0
// `sealift-train run`: settings in; this process becomes one rank, or starts the ranks of its host; a result out.
// See run.hpp for the training and on_ranks.hpp for the start of ranks.
// Settings that contradict each other are refused here, before any rank is started.
#include "trainer/verification/run.hpp"

#include "trainer/failure.hpp"
#include "trainer/json_numbers.hpp"
#include "trainer/monitor/monitor.hpp"
#include "trainer/ranks/job_policy.hpp"
#include "trainer/ranks/on_ranks.hpp"
#include "trainer/verbs/verbs.hpp"

namespace sealift::trainer {
namespace {

struct RunArguments {
  Texts flags;
  std::string config_file;
  std::int64_t ranks = 0;
  bool json = false;
};

void print_run(const nlohmann::ordered_json& result, bool json) {
  if (json) {
    std::cout << with_all_numbers(result).dump(1) << '\n';
    return;
  }
  std::cout << result["parallel_method"].get<std::string>() << " x" << result["world_size"] << ": loss "
            << result["final_loss"].get<double>() << " after " << result["steps"] << " steps, floor "
            << result["entropy_floor"].get<double>() << ", " << result["verdict"].get<std::string>() << "; "
            << cost_line(result["monitor"]) << '\n';
}

}  // namespace

void add_run(bundle::Program& program, char** argv) {
  const auto arguments = std::make_shared<RunArguments>();
  const auto verb = program.verb("run", "train and write OUT/log.jsonl and OUT/result.json");
  verb.option("--config", arguments->config_file, "TOML file of the settings below, names with underscores");
  add_ranks(verb, arguments->ranks);
  verb.flag("--json", arguments->json, "print result.json");
  add_settings(verb, settings(), arguments->flags);
  verb.action([arguments, argv] {
    const auto options = read_options(arguments->flags, arguments->config_file);
    make_policy(options);  // settings that contradict each other are refused once, not by each rank
    const auto end =
        on_ranks([&](const auto& launch, auto& world) { return run(options, launch, world); }, arguments->ranks, argv);
    if (!end.result) return end.code;
    print_run(*end.result, arguments->json);
    if ((*end.result)["verdict"] != "fail") return end.code;
    say("the final loss is not near the floor: this environment does not compute what it should, or the settings do "
        "not let the model learn; see check --help");
    return kBad;
  });
}

}  // namespace sealift::trainer
