// SPDX-License-Identifier: Apache-2.0
// See race.hpp.
#include "trainer/compare/race.hpp"

#include "bundle/host/start_process.hpp"
#include "sealift/bundle/host/child_process.hpp"

#include <algorithm>
#include <sstream>
#include <stdexcept>

namespace sealift::trainer::compare {
namespace {

/// A method as the settings have it; both names, so that neither of the job's own contradicts it.
struct Entrant {
  const char *name, *parallel_method, *sharding_strategy;
};

constexpr Entrant kEntrants[] = {
    {"none", "none", ""},
    {"ddp", "ddp", "NO_SHARD"},
    {"fsdp", "fsdp", "FULL_SHARD"},
    {"shard_grad_op", "fsdp", "SHARD_GRAD_OP"},
    {"hsdp", "hsdp", "HYBRID_SHARD"},
};

const Entrant& entrant_of(const std::string& name) {
  for (const auto& entrant : kEntrants) {
    if (name == entrant.name) return entrant;
  }
  std::string names;
  for (const auto& each : method_names()) names += (names.empty() ? "" : ", ") + each;
  throw std::invalid_argument("--methods: " + name + " is no method; expected some of " + names);
}

constexpr std::string_view kRank = "sealift-train: rank ";

using Words = std::vector<std::string>;

Words command_of(const RaceOptions& options, const Entrant& entrant, const std::filesystem::path& folder) {
  const auto steps = std::to_string(options.steps);
  Words words{options.program, options.verb, "--config", options.job};
  if (options.ranks > 0) words.insert(words.end(), {"--ranks", std::to_string(options.ranks)});
  words.insert(words.end(), {"--parallel-method", entrant.parallel_method});
  if (*entrant.sharding_strategy) words.insert(words.end(), {"--sharding-strategy", entrant.sharding_strategy});
  if (options.shard_size > 0 && entrant.name == std::string("hsdp"))
    words.insert(words.end(), {"--shard-size", std::to_string(options.shard_size)});
  // One checkpoint, behind the last step, so that its seconds are known and in no step.
  if (options.verb == "run") {
    words.insert(words.end(), {"--steps", steps, "--out", folder.string(), "--checkpoint-every", steps,
                               "--checkpoint-folder", (folder / "checkpoints").string(), "--resume", "none"});
  } else {
    words.insert(words.end(), {"--max-steps",
                               steps,
                               "--output-dir",
                               folder.string(),
                               "--save-strategy",
                               "steps",
                               "--save-steps",
                               steps,
                               "--eval-strategy",
                               "no",
                               "--resume-from-checkpoint",
                               "none",
                               "--load-best-model-at-end",
                               "false",
                               "--early-stop-interval",
                               "0",
                               "--merge-lora",
                               "false",
                               "--sample-prompts",
                               "0"});
  }
  words.insert(words.end(), options.settings.begin(), options.settings.end());
  return words;
}

/// What the run said of itself: the first line of a rank's own error, else the last that says something. That a rank
/// ended, and the others with it, is no reason.
std::string reason_in(const std::string& errors) {
  std::string last = "it said nothing";
  std::istringstream lines(errors);
  for (std::string line; std::getline(lines, line);) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    // "sealift-train: rank 3: the reason"
    const auto number =
        line.starts_with(kRank) ? line.find_first_not_of("0123456789", kRank.size()) : std::string::npos;
    if (number != std::string::npos && number > kRank.size() && line.compare(number, 2, ": ") == 0)
      return line.substr(kRank.size() - 5);
    if (line.find("ending the other ranks") == std::string::npos) last = line;
  }
  return last;
}

RunCost failed(const std::string& why) {
  return {.name = {}, .method = {}, .device = {}, .precision = {}, .losses = {}, .fault = why};
}

RunCost cost_of(const RaceOptions& options, const Entrant& entrant, const std::filesystem::path& folder) {
  const bundle::Child child{.arguments = command_of(options, entrant, folder),
                            .environment = bundle::environment_with({}),
                            .contained = false,
                            .patience = options.patience,
                            .keep_errors = 16384};
  const auto end = bundle::run_child(child);
  if (end.late) return failed("no end after " + std::to_string(options.patience.count()) + " s");
  const auto file = folder / "result.json";
  // `run` also judges what was learnt, which no few steps can.
  const bool ran = end.good() || (options.verb == "run" && end.exit_code == 1 && std::filesystem::exists(file));
  if (!ran) return failed(reason_in(end.errors));
  try {
    return read_costs({file.string()}).front();
  } catch (const std::exception& error) {  // of the other methods' rows none is lost
    return failed(error.what());
  }
}

void remove_what_was_timed(const std::filesystem::path& folder) {
  std::error_code ignored;
  for (const auto* name : {"checkpoints", "model", "adapter", "merged"})
    std::filesystem::remove_all(folder / name, ignored);
}

}  // namespace

std::vector<std::string> method_names() {
  std::vector<std::string> names;
  for (const auto& entrant : kEntrants) names.emplace_back(entrant.name);
  return names;
}

std::vector<RunCost> race(const RaceOptions& options, const std::function<void(const std::string&)>& says) {
  std::vector<const Entrant*> entrants;
  for (const auto& name : options.methods) {
    const auto* entrant = &entrant_of(name);
    if (std::find(entrants.begin(), entrants.end(), entrant) != entrants.end())
      throw std::invalid_argument("--methods names " + name + " twice");
    if (std::filesystem::exists(options.out / name)) {
      throw std::invalid_argument((options.out / name).string() +
                                  " exists, and a race begins anew; remove it or name another --out");
    }
    entrants.push_back(entrant);
  }
  std::vector<RunCost> costs;
  for (const auto* entrant : entrants) {
    says(std::string(entrant->name) + ": " + std::to_string(options.steps) + " steps");
    const auto folder = options.out / entrant->name;
    auto cost = cost_of(options, *entrant, folder);
    remove_what_was_timed(folder);
    cost.method = entrant->name;
    if (!cost.fault.empty()) cost.ranks = std::max<std::int64_t>(1, options.ranks);
    cost.name = cost.method + " x" + std::to_string(cost.ranks);
    costs.push_back(std::move(cost));
  }
  return costs;
}

}  // namespace sealift::trainer::compare
