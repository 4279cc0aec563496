// SPDX-License-Identifier: Apache-2.0
// A job that is killed after a checkpoint and goes on, and a checkpoint that another world loads.
// See methods.hpp.
// One rank's process is killed, as a failing host does it; the others must end by themselves.
#include "verify/training/curves.hpp"
#include "verify/training/methods.hpp"
#include "verify/training/plan.hpp"

#include <algorithm>

namespace sealift::verify {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr std::int64_t kSteps = 60, kEvery = 5;

/// Rank 0's folder for checkpoints, empty before the check and gone after it.
class CheckpointFolder {
 public:
  CheckpointFolder(const Site& site, const std::string& name)
      : path_(folder_of_all(site, name)), mine_(site.rank == 0) {
    if (mine_) fs::remove_all(path_);
    if (mine_) fs::create_directories(path_);
  }
  ~CheckpointFolder() {
    std::error_code ignored;
    if (mine_) fs::remove_all(path_, ignored);
  }
  CheckpointFolder(const CheckpointFolder&) = delete;
  CheckpointFolder& operator=(const CheckpointFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
  bool mine_;
};

bool has_checkpoint(const fs::path& folder) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (fs::exists(entry.path() / "index.json", ignored)) return true;
  }
  return false;
}

TrainingJob saving_job(const Site& site, const std::string& name, const fs::path& folder) {
  auto job = plain_job(site, name, "fsdp");
  job.settings["steps"] = std::to_string(kSteps);
  job.settings["checkpoint_folder"] = (folder / "saved").string();
  job.settings["checkpoint_every"] = std::to_string(kEvery);
  return job;
}

Json measure_resume(const Site& site) {
  need_ranks(site);
  const CheckpointFolder folder(site, "resume");
  auto whole = saving_job(site, "whole", folder.path());
  whole.settings.erase("checkpoint_folder");
  whole.settings.erase("checkpoint_every");
  const auto never_stopped = run_job(site, whole, {.port = 0});
  if (never_stopped.contains("failed")) return never_stopped;
  const auto job = saving_job(site, "killed", folder.path());
  const bool is_last = site.rank == site.world_size - 1;
  const auto saved = folder.path() / "saved";
  const auto killed = run_job(site, job, {.port = 1, .kill_when = [&] { return is_last && has_checkpoint(saved); }});
  auto ran = run_job(site, job, {.port = 2});
  if (ran.contains("failed")) return ran;
  ran["killed"] = killed.contains("failed");
  if (site.rank == 0) ran["reference"] = never_stopped;
  return ran;
}

/// A job that silently begins anew computes the same, since it is deterministic: that shows nothing of checkpoints.
bool has_not_gone_on(const Json& ran, Check& check) {
  const auto& result = ran.at("result");
  if (!result.contains("resumed_after")) {
    check.reason = {"this sealift-train does not say in result.json where it went on; carry the one of this version",
                    "该 sealift-train 未在 result.json 中说明从何处继续；请携带与本程序同版本的 sealift-train"};
    return true;
  }
  if (result.at("resumed_after") > 0) return false;
  check.outcome = Outcome::Fail;
  check.reason = {"the job began anew and not from the checkpoint that was there",
                  "任务从头开始，没有从已有的检查点继续"};
  return true;
}

void judge_resume(const std::vector<Measured>& all, Check& check) {
  if (judge_failures(all, check)) return;
  const bool killed =
      std::all_of(all.begin(), all.end(), [](const Measured& each) { return each.values.value("killed", false); });
  if (!killed) {
    check.outcome = Outcome::NotRun;
    check.reason = {"the job ended before it could be killed; run this check again",
                    "任务在被终止之前已结束；请重新运行此项检查"};
    return;
  }
  const auto& ran = of_first(all);
  if (has_not_gone_on(ran, check)) return;
  judge_curves(series_of(ran, {"the job that was killed and went on", "被终止后继续的任务"}),
               series_of(ran.at("reference"), {"the job that never stopped", "未中断的任务"}), 0, check);
}

Json measure_other_world(const Site& site) {
  need_ranks(site);
  const CheckpointFolder folder(site, "other_world");
  auto first = saving_job(site, "first_half", folder.path());
  first.settings["steps"] = std::to_string(kSteps / 2);
  const auto half = run_job(site, first, {.port = 0});
  if (half.contains("failed") || site.rank != 0) return half;
  auto alone = saving_job(site, "second_half", folder.path());
  alone.settings["parallel_method"] = plain_job(site, "", "none").settings.at("parallel_method");
  auto ran = run_job(site, alone, {.crew = Crew::One});
  if (ran.contains("failed")) return ran;
  // Its norms are of the second half; those of the first are the first job's.
  auto norms = half.at("norms");
  norms.insert(norms.end(), ran.at("norms").begin(), ran.at("norms").end());
  ran["norms"] = norms;
  alone.name = "alone";
  alone.settings.erase("checkpoint_folder");
  ran["reference"] = run_job(site, alone, {.crew = Crew::One});
  if (ran.at("reference").contains("failed")) return ran.at("reference");
  ran["of_ranks"] = half.at("ranks");
  ran["tolerance"] = tolerance_of(training_expectation(site));
  return ran;
}

void judge_other_world(const std::vector<Measured>& all, Check& check) {
  if (judge_failures(all, check)) return;
  const auto& ran = of_first(all);
  if (has_not_gone_on(ran, check)) return;
  const auto ranks = std::to_string(ran.at("of_ranks").get<int>());
  judge_curves(
      series_of(ran, {ranks + " ranks, then one from their checkpoint", ranks + " 个进程训练后由单进程从其检查点继续"}),
      series_of(ran.at("reference"), {"one process", "单进程"}), ran.at("tolerance").get<double>(), check);
}

}  // namespace

std::vector<CheckKind> resume_checks() {
  return {{.name = "training.resume",
           .part = Part::Training,
           .from = Level::Full,
           .title = {"A job that is killed goes on from its checkpoint, bit for bit",
                     "任务被终止后从检查点继续，结果逐位一致"},
           .who = Who::EveryRank,
           .measure = measure_resume,
           .judge = [](const auto& all, const Site&, Check& check) { judge_resume(all, check); }},
          {.name = "training.other_world",
           .part = Part::Training,
           .from = Level::Full,
           .title = {"A checkpoint goes on in a world of another size", "检查点可由不同数目的进程继续"},
           .who = Who::EveryRank,
           .measure = measure_other_world,
           .judge = [](const auto& all, const Site&, Check& check) { judge_other_world(all, check); }}};
}

}  // namespace sealift::verify
