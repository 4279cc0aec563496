// SPDX-License-Identifier: Apache-2.0
// One process, ddp, fsdp, hsdp, the site's own method, accumulation, recompute: one job each, one curve for all.
// See methods.hpp.
// Rank 0 trains as one process once and keeps that for all checks of a run.
#include "verify/training/methods.hpp"
#include "trainer/verification/check.hpp"
#include "verify/training/curves.hpp"
#include "verify/training/plan.hpp"

#include <limits>

namespace sealift::verify {
namespace {

using Json = nlohmann::json;

/// The same job as one process, made when first asked for.
class OneProcess {
 public:
  Json of(const Site& site) {
    if (site.rank != 0) return Json::object();
    if (ran_.is_null()) ran_ = run_job(site, plain_job(site, "one_process", "none"), {.crew = Crew::One});
    return ran_;
  }

 private:
  Json ran_;
};

struct Method {
  std::string name;
  Level from;
  Phrase title, called;
  /// Changes the job of `plain_job`, and says how it is run.
  std::function<std::pair<TrainingJob, HowToRun>(const Site&)> make;
};

std::pair<TrainingJob, HowToRun> by_method(const Site& site, const std::string& method) {
  return {plain_job(site, method, method), {}};
}

std::pair<TrainingJob, HowToRun> by_hsdp(const Site& site) {
  HowToRun how{.local_ranks = 4};
  auto job = plain_job(site, "hsdp", "hsdp");
  job.settings["shard_size"] = std::to_string(shard_size_of(site, crew_size(site, how.local_ranks)));
  return {job, how};
}

std::pair<TrainingJob, HowToRun> by_own(const Site& site) {
  const auto expected = training_expectation(site);
  if (!expected.method) {
    throw NotRun({"site.toml names no method of the site: [training] method = \"fsdp\"",
                  "site.toml 未指定本站点的并行方法：[training] method = \"fsdp\""});
  }
  auto job = plain_job(site, "own", *expected.method);
  for (const auto& [name, value] : expected.settings) job.settings[name] = value;
  if (*expected.method == "hsdp" && !job.settings.contains("shard_size")) {
    job.settings["shard_size"] = std::to_string(shard_size_of(site, crew_size(site, 4)));
  }
  return {job, {.local_ranks = *expected.method == "hsdp" ? 4 : 2}};
}

std::pair<TrainingJob, HowToRun> job_with(const Site& site, const std::string& name, const std::string& setting,
                                          const std::string& value) {
  auto job = plain_job(site, name, "fsdp");
  job.settings[setting] = value;
  return {job, {}};
}

Json measure_method(const Site& site, const Method& method, OneProcess& one) {
  need_ranks(site);
  const auto [job, how] = method.make(site);
  const auto reference = one.of(site);
  if (reference.contains("failed")) return reference;
  auto ran = run_job(site, job, how);
  if (site.rank == 0 && !ran.contains("failed")) {
    ran["reference"] = reference;
    ran["tolerance"] = tolerance_of(training_expectation(site));
  }
  return ran;
}

CheckKind kind_of_method(const Method& method, const std::shared_ptr<OneProcess>& one) {
  return {.name = "training." + method.name,
          .part = Part::Training,
          .from = method.from,
          .title = method.title,
          .who = Who::EveryRank,
          .measure = [method, one](const Site& site) { return measure_method(site, method, *one); },
          .judge = [method](const auto& all, const Site&, Check& check) { judge_method(all, method.called, check); }};
}

/// Both curves reach what the data allow.
void judge_floor(const std::vector<Json>& results, double tolerance, Check& check) {
  const bool enough = results.front().at("losses").size() >= 100;
  const double factor = enough ? trainer::kFloorFactor : std::numeric_limits<double>::infinity();
  const auto report = trainer::check(results, tolerance, factor);
  const double floor = report.floor;
  const Phrase entropy{"entropy of the data", "数据的熵"};
  check.figures.push_back({.name = {"final loss", "最终损失"},
                           .value = report.final_loss,
                           .unit = {"nats per token", "nat/词元"},
                           .at_least = 0.9 * floor,
                           .at_most = enough ? std::optional(factor * floor) : std::nullopt,
                           .basis = entropy});
  if (check.graphs.empty()) return;
  const auto last = static_cast<double>(results.front().at("losses").size());
  check.graphs.back().curves.push_back({.name = entropy, .points = {{1, floor}, {last, floor}}, .expected = true});
  if (report.problems.empty() || check.outcome == Outcome::Fail) return;
  check.outcome = Outcome::Fail;
  check.reason = {report.problems.front(), "损失未达到数据的熵：" + report.problems.front()};
}

CheckKind one_process_kind(const std::shared_ptr<OneProcess>& one) {
  return {.name = "training.one_process",
          .part = Part::Training,
          .from = Level::Quick,
          .title = {"One process trains to the entropy of the data", "单进程训练达到数据的熵"},
          .who = Who::FirstRank,
          .measure = [one](const Site& site) { return one->of(site); },
          .judge =
              [](const auto& all, const Site&, Check& check) {
                if (judge_failures(all, check)) return;
                const auto& ran = of_first(all);
                const auto series = series_of(ran, {"one process", "单进程"});
                judge_curves(series, series, 0, check);  // a loss that is not finite does not equal itself
                check.graphs.front().curves.erase(check.graphs.front().curves.begin());
                check.figures.clear();
                judge_floor({ran.at("result")}, 0, check);
                const auto steps = std::to_string(series.losses.size());
                if (check.outcome == Outcome::Pass) {
                  check.reason = {
                      steps + " steps; every loss is finite" +
                          (series.losses.size() < 100 ? ", too few to reach the entropy of the data" : ""),
                      steps + " 步，损失均为有限值" + (series.losses.size() < 100 ? "；步数不足以达到数据的熵" : "")};
                }
              }};
}

}  // namespace

void judge_method(const std::vector<Measured>& all, const Phrase& name, Check& check) {
  if (judge_failures(all, check)) return;
  const auto& ran = of_first(all);
  const auto count = std::to_string(ran.at("ranks").get<int>());
  const auto tolerance = ran.at("tolerance").get<double>();
  judge_curves(series_of(ran, {name.en + " on " + count + " ranks", count + " 个进程的" + name.zh}),
               series_of(ran.at("reference"), {"one process", "单进程"}), tolerance, check);
  judge_floor({ran.at("reference").at("result"), ran.at("result")}, tolerance, check);
  const bool started_here = all.size() == 1 && count != "1";
  check.facts.push_back({{"ranks", "进程数"},
                         started_here
                             ? Phrase{count + " on this host, started for this", count + "（在本主机为此启动）"}
                             : Phrase(count)});
}

std::vector<CheckKind> method_checks() {
  const auto one = std::make_shared<OneProcess>();
  const std::vector<Method> methods{
      {"ddp",
       Level::Quick,
       {"DDP computes what one process computes", "DDP 与单进程结果一致"},
       {"ddp", " ddp "},
       [](const Site& site) { return by_method(site, "ddp"); }},
      {"fsdp",
       Level::Quick,
       {"FSDP computes what one process computes", "FSDP 与单进程结果一致"},
       {"fsdp", " fsdp "},
       [](const Site& site) { return by_method(site, "fsdp"); }},
      {"hsdp",
       Level::Full,
       {"HSDP computes what one process computes", "HSDP 与单进程结果一致"},
       {"hsdp", " hsdp "},
       by_hsdp},
      {"site_method",
       Level::Quick,
       {"The site's own method computes what one process computes", "本站点的并行方法与单进程结果一致"},
       {"the site's method", "本站点方法"},
       by_own},
      {"accumulation",
       Level::Full,
       {"Gradients summed over micro-batches are those of the whole batch", "梯度累积与整批训练一致"},
       {"accumulation", "梯度累积"},
       [](const Site& site) { return job_with(site, "accumulation", "micro_batches", "2"); }},
      {"recompute",
       Level::Full,
       {"Activations computed again equal the kept ones", "重计算与保留激活值一致"},
       {"recompute", "重计算"},
       [](const Site& site) { return job_with(site, "recompute", "recompute", "true"); }}};
  std::vector<CheckKind> kinds{one_process_kind(one)};
  for (const auto& method : methods) kinds.push_back(kind_of_method(method, one));
  return kinds;
}

}  // namespace sealift::verify
