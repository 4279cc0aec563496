// SPDX-License-Identifier: Apache-2.0
// `sealift-train race JOB`: a few steps of a job under each method, and what each cost side by side.
// See compare/race.hpp. On this host; of several hosts, run the job under each method and `compare` the results.
#include "trainer/compare/race.hpp"

#include "trainer/settings/foreign_jobs.hpp"
#include "trainer/settings/settings_file.hpp"
#include "trainer/verbs/shown_comparison.hpp"
#include "trainer/verbs/verbs.hpp"

#include <sealift/train/launch/launch_variables.hpp>

namespace sealift::trainer {
namespace {

struct RaceArguments {
  compare::RaceOptions race;
  std::string verb, out = "sealift-race";
  std::uint64_t minutes = 60;
  ShownAs shown;
};

/// What the job says that it trains towards; where it does not, sft.
std::string verb_of(const RaceArguments& arguments) {
  const auto task = task_of(read_config(arguments.race.job));
  return arguments.verb.empty() ? to_string(task.value_or(Task::Sft)) : arguments.verb;
}

int race_and_show(const RaceArguments& arguments) {
  if (const auto launch = train::parse_launch(); launch.world_size > 1) {
    throw std::invalid_argument("race starts its ranks itself, and was started as a rank (" + launch.source +
                                "); start it once, with --ranks; of several hosts run the job under each method, and "
                                "`sealift-train compare` the results");
  }
  auto options = arguments.race;
  options.program = std::filesystem::read_symlink("/proc/self/exe").string();
  options.verb = verb_of(arguments);
  options.out = arguments.out;
  options.patience = std::chrono::minutes(arguments.minutes);
  auto runs = compare::race(options, [](const std::string& line) { say(line); });
  return show(compare::compare_runs(std::move(runs), 1e-4), "sealift-train race", arguments.shown);
}

}  // namespace

void add_race(bundle::Program& program) {
  const auto arguments = std::make_shared<RaceArguments>();
  auto& race = arguments->race;
  race.methods = {"ddp", "fsdp", "shard_grad_op"};
  const auto verb = program.verb("race", "run a few steps of a job under each method, and measure which is best");
  verb.option("JOB", race.job, "a job file, as for --config").required();
  verb.option("--methods", race.methods, "none, ddp, fsdp, shard_grad_op, hsdp [ddp,fsdp,shard_grad_op]").listed();
  verb.option("--steps", race.steps, "steps of each run; speeds leave out the first").between(3, 100000).show_default();
  verb.option("--ranks", race.ranks, "ranks on this host").between(1, 1024);
  verb.option("--shard-size", race.shard_size, "of hsdp: ranks that share one copy").between(1, 1024);
  verb.option("--verb", arguments->verb, "the job's verb [the job's own, or sft]")
      .one_of({"sft", "dpo", "kto", "reward", "pretrain", "run"});
  verb.option("--out", arguments->out, "the folder that gets a folder of each run").show_default();
  verb.option("--minutes", arguments->minutes, "that each run may take").between(1, 100000).show_default();
  add_shown(verb, arguments->shown);
  verb.footer([] { return std::string("Further words are settings of each run, as --max_length 512.\n"); });
  verb.others(race.settings);
  verb.action([arguments] { return race_and_show(*arguments); });
}

}  // namespace sealift::trainer
