// SPDX-License-Identifier: Apache-2.0
// The checks training.golden.NAME: what each rank runs.
// See golden.hpp; golden_judge.cpp holds it against what was recorded.
// Inside it is run by one process, as it was recorded and by all ranks: together they say which side is wrong.
#include "verify/training/golden.hpp"

#include "verify/training/by_rank.hpp"
#include "verify/training/plan.hpp"

#include <algorithm>

namespace sealift::verify {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

/// The job by all ranks of the site; nothing where they cannot share its rows.
std::optional<TrainingJob> for_world(const Site& site, const Golden& golden) {
  auto job = job_on_ranks(golden, site.prefix, "golden_world", site.world_size);
  if (!job) return job;
  const auto expected = training_expectation(site);
  job->settings["parallel_method"] = expected.method.value_or(golden.ranks > 1 ? golden.method : "fsdp");
  job->settings["timeout_seconds"] = "3600";  // rank 0 trains on its own first
  if (expected.method == "hsdp") job->settings["shard_size"] = std::to_string(shard_size_of(site, site.world_size));
  return job;
}

/// Files of the golden run that are not here, or have other bytes.
std::vector<std::string> changed_inputs(const Golden& golden, const fs::path& prefix) {
  std::vector<std::string> changed;
  for (const auto& [path, digest] : golden.inputs) {
    const bool there = fs::is_regular_file(prefix / path);
    if (!there || digest_of_files({prefix / path}) != digest) changed.push_back(path);
  }
  return changed;
}

/// What rank 0 computes without the others, under the names that judge_golden reads.
void run_on_first(const Site& site, const Golden& golden, Json& values) {
  const auto keep = [&](const char* name, Json ran) {
    if (site.rank != 0) return;
    if (ran.contains("failed")) values.update(ran);
    values[name] = std::move(ran);
  };
  if (golden.ranks == 1) return keep("alone", run_as_recorded(site, golden));
  keep("alone", run_alone(site, golden));
  const bool can = has_devices_for(site, golden);
  if (can) keep("recorded", run_as_recorded(site, golden));
  if (site.rank == 0) values["no_ranks"] = !can;
}

Json measure_golden(const Site& site, const std::string& name) {
  const auto golden = read_golden(golden_folder(site.prefix) / (name + ".json"));
  Json values = Json::object();
  if (site.is_first_of_host()) values["changed"] = changed_inputs(golden, site.prefix);
  if (site.rank == 0) values["golden"] = to_json(golden);
  run_on_first(site, golden, values);
  // A file of a program that did not say it has the settings all the same.
  const auto by_rank = golden.by_rank.empty() ? setting_by_rank(golden.job, site.prefix) : golden.by_rank;
  if (site.world_size > 1 && golden.ranks == 1 && !by_rank.empty()) {
    values["by_rank"] = by_rank;
    return values;
  }
  const auto job = site.world_size > 1 ? for_world(site, golden) : std::nullopt;
  if (!job) {
    values["no_world"] = site.world_size > 1;
    return values;
  }
  const auto world = run_job(site, *job, {});
  if (world.contains("failed")) values.update(world);
  if (site.rank == 0) values["world"] = world;
  return values;
}

CheckKind kind_of_golden(const std::string& name) {
  return {.name = "training.golden." + name,
          .part = Part::Training,
          .from = Level::Quick,
          .title = {"The golden run " + name + " gives here what it gave outside",
                    "基准运行 " + name + " 在此得到与外网相同的结果"},
          .who = Who::EveryRank,
          .measure = [name](const Site& site) { return measure_golden(site, name); },
          .judge = [](const auto& all, const Site&, Check& check) { judge_golden(all, check); }};
}

CheckKind no_golden() {
  return {.name = "training.golden",
          .part = Part::Training,
          .from = Level::Quick,
          .title = {"A golden run gives here what it gave outside", "基准运行在此得到与外网相同的结果"},
          .who = Who::FirstRank,
          .measure = [](const Site&) -> Json {
            throw NotRun({"the bundle carries no golden run; record one and name it in the job file: [[golden]]",
                          "包中没有基准运行；请录制一个并写入任务文件：[[golden]]"});
          },
          .judge = [](const auto&, const Site&, Check&) {}};
}

}  // namespace

fs::path golden_folder(const fs::path& prefix) {
  return prefix / "share/sealift/golden";
}

std::vector<std::string> golden_names(const fs::path& prefix) {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(golden_folder(prefix), none)) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<CheckKind> golden_checks(const std::vector<std::string>& names) {
  std::vector<CheckKind> kinds;
  for (const auto& name : names) kinds.push_back(kind_of_golden(name));
  if (kinds.empty()) kinds.push_back(no_golden());
  return kinds;
}

}  // namespace sealift::verify
