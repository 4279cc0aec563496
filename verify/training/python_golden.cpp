// SPDX-License-Identifier: Apache-2.0
// Python as a second program that computes the golden run.
// See python_golden.hpp.
// What Python cannot compare is NOT RUN with its own words; it is never taken for agreement.
#include "verify/training/python_golden.hpp"

#include "trainer/json_numbers.hpp"
#include "verify/conduct/child_watch.hpp"
#include "verify/conduct/last_error.hpp"
#include "verify/training/by_rank.hpp"
#include "verify/training/golden.hpp"
#include "verify/training/plan.hpp"
#include "verify/wording/numbers.hpp"

#include <cmath>
#include <fstream>

namespace sealift::verify {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr int kDigits = 9;  // of a loss

constexpr const char* kScript =
#include "verify/training/golden_peer.inc"
    ;

std::string last_line_said(const std::string& text) {
  const auto end = text.find_last_not_of("\n ");
  if (end == std::string::npos) return "it said nothing";
  const auto begin = text.find_last_of('\n', end);
  return text.substr(begin == std::string::npos ? 0 : begin + 1,
                     end - (begin == std::string::npos ? 0 : begin + 1) + 1);
}

fs::path python_of_prefix(const Site& site) {
  const auto python = site.prefix / "bin/python3";
  if (fs::exists(python)) return python;
  throw NotRun({site.prefix.string() + " has no bin/python3", site.prefix.string() + " 中没有 bin/python3"});
}

/// Runs the carried script; what it wrote (null on other ranks than 0), or `code` and `failed`.
Json run_peer_script(const Site& site, std::vector<std::string> arguments, std::size_t port) {
  const auto script = site.work / "golden_peer.py", out = fs::path(arguments.at(3));
  std::ofstream(script) << kScript;
  auto variables = without_launcher();
  const auto set = [&](const char* name, const std::string& value) { variables.emplace_back(name, value); };
  set("HF_HUB_OFFLINE", "1");
  if (site.world_size > 1 && arguments.front() != "adapter") {
    set("RANK", std::to_string(site.rank));
    set("WORLD_SIZE", std::to_string(site.world_size));
    set("LOCAL_RANK", std::to_string(site.local_rank));
    set("LOCAL_WORLD_SIZE", std::to_string(site.local_world_size));
    set("MASTER_ADDR", site.master_addr);
    set("MASTER_PORT", std::to_string(site.free_ports.at(port)));
  }
  arguments.insert(arguments.begin(), {python_of_prefix(site).string(), script.string()});
  const auto child = run_for(site, arguments, variables, std::chrono::hours(1));
  if (child.code == 3) {
    const auto why = last_line_said(child.err);
    throw NotRun({why, "Python 一侧无法比较：" + why});
  }
  if (!child.good()) return {{"code", child.code}, {"failed", "Python: " + last_error(child.err)}};
  if (!fs::exists(out)) return nullptr;
  std::ifstream in(out);
  return Json::parse(in);
}

fs::path golden_file_of(const Site& site, const std::string& name) {
  return golden_folder(site.prefix) / (name + ".json");
}

/// Another program draws other random numbers.
void need_no_random_numbers(const Site& site, const Golden& golden) {
  const auto setting = setting_by_rank(golden.job, site.prefix);
  if (setting == "lora_dropout") throw NotRun(why_by_rank(setting));
}

Json measure_python_methods(const Site& site, const std::string& name) {
  const auto golden = read_golden(golden_file_of(site, name));
  need_no_random_numbers(site, golden);
  Json values = Json::object();
  std::size_t port = 0;
  for (const char* method : {"ddp", "fsdp2"}) {
    std::vector<std::string> arguments{method, golden_file_of(site, name).string(), site.prefix.string(),
                                       (site.work / (std::string(method) + ".json")).string(), device_kind(site)};
    if (site.world_size == 1) arguments.push_back(device_kind(site) == "cpu" ? "2" : "1");
    const auto ran = run_peer_script(site, arguments, port++);
    if (ran.is_object() && ran.contains("failed")) return ran;
    if (site.rank == 0) values[method] = ran;
  }
  if (site.rank == 0) values["golden"] = to_json(golden);
  return values;
}

Json measure_swift(const Site& site, const std::string& name) {
  const auto file = golden_file_of(site, name);
  const auto golden = read_golden(file);
  need_no_random_numbers(site, golden);
  const auto ran = run_peer_script(
      site, {"swift", file.string(), site.prefix.string(), (site.work / "swift.json").string(), device_kind(site)}, 0);
  if (ran.is_object() && ran.contains("failed")) return ran;
  if (site.rank != 0) return Json::object();
  return {{"swift", ran}, {"golden", to_json(golden)}};
}

Json measure_adapter(const Site& site, const std::string& name) {
  const auto golden = read_golden(golden_file_of(site, name));
  const auto tuner = golden.job.settings.find("tuner_type");
  if (golden.job.verb != "sft" || (tuner != golden.job.settings.end() && tuner->second != "lora")) {
    throw NotRun({"the golden run " + name + " trains no LoRA adapter", "基准运行 " + name + " 不训练 LoRA 适配器"});
  }
  python_of_prefix(site);
  auto job = job_on_ranks(golden, site.prefix, "adapter", 1).value();
  job.settings["val_dataset"] = job.settings.at("dataset");
  job.settings["eval_steps"] = std::to_string(golden.losses.size());
  const auto ours = run_job(site, job, {.crew = Crew::One});
  if (ours.contains("failed")) return ours;
  auto values = run_peer_script(site,
                                {"adapter", golden_file_of(site, name).string(), site.prefix.string(),
                                 (site.work / "peft.json").string(), (site.work / "adapter/adapter").string()},
                                0);
  if (values.contains("failed")) return values;
  values["ours"] = ours.at("result").at("evaluations").back().at("loss");
  return values;
}

std::vector<double> numbers_of_peer(const Json& array) {
  std::vector<double> values;
  for (const auto& value : array) values.push_back(trainer::number_or_nan(value));
  return values;
}

Phrase name_of_peer(const std::string& method, int ranks) {
  const auto crew = std::to_string(ranks);
  if (method == "swift") return {"swift sft on " + crew + " ranks", crew + " 个进程的 swift sft"};
  const std::string called = method == "ddp" ? "DDP" : "FSDP2";
  return {"Python's " + called + " on " + crew + " ranks", "Python 的 " + called + "（" + crew + " 个进程）"};
}

}  // namespace

void judge_python_golden(const std::vector<Measured>& all, Check& check) {
  if (judge_failures(all, check)) return;
  const auto& values = of_first(all);
  const auto golden = golden_from(values.at("golden"), "the golden run");
  const Series recorded{.name = {"the golden run", "基准运行"}, .losses = golden.losses, .norms = golden.norms};
  for (const auto& [method, ran] : values.items()) {
    if (method == "golden") continue;
    const Series python{.name = name_of_peer(method, ran.at("ranks").get<int>()),
                        .losses = numbers_of_peer(ran.at("losses")),
                        .norms = numbers_of_peer(ran.at("norms"))};
    // Another program: the same formulas in another order of summation.
    judge_curves(python, recorded, std::max(default_tolerance("fp32"), tolerance_of(golden, "", "")), check);
    if (check.facts.empty()) {
      for (const auto& [name, version] : ran.at("versions").items())
        check.facts.push_back({name, version.get<std::string>()});
    }
  }
}

void judge_adapter(const std::vector<Measured>& all, Check& check) {
  if (judge_failures(all, check)) return;
  const auto& values = of_first(all);
  const auto ours = trainer::number_or_nan(values.at("ours")), after = trainer::number_or_nan(values.at("after"));
  const auto before = trainer::number_or_nan(values.at("before"));
  const double apart = std::abs(after - ours) / std::abs(ours);
  check.figures.push_back({.name = {"loss of the data with the adapter, in PEFT", "在 PEFT 中加载适配器后的数据损失"},
                           .value = after,
                           .unit = {"nats per token", "nat/词元"},
                           .at_least = ours * (1 - 1e-4),
                           .at_most = ours * (1 + 1e-4),
                           .basis = {"sealift-train's evaluation", "sealift-train 的评估"}});
  check.facts.push_back({{"loss without the adapter", "不加载适配器的损失"}, number_text(before, kDigits)});
  const bool changes = before != after;
  check.outcome = apart <= 1e-4 && changes ? Outcome::Pass : Outcome::Fail;  // a NaN fails
  const auto both = number_text(after, kDigits) + ", sealift-train " + number_text(ours, kDigits);
  check.reason = changes ? Phrase{"with the adapter PEFT has a loss of " + both, "加载适配器后 PEFT 的损失为 " + both}
                         : Phrase{"the adapter changes nothing in PEFT", "适配器在 PEFT 中不起作用"};
}

std::vector<CheckKind> python_golden_checks(const std::vector<std::string>& names) {
  std::vector<CheckKind> kinds;
  for (const auto& name : names) {
    kinds.push_back({.name = "python.golden." + name,
                     .part = Part::Python,
                     .from = Level::Full,
                     .title = {"Python's DDP and FSDP2 give the golden run " + name,
                               "Python 的 DDP 与 FSDP2 得到与基准运行相同的结果：" + name},
                     .who = Who::EveryRank,
                     .measure = [name](const Site& site) { return measure_python_methods(site, name); },
                     .judge = [](const auto& all, const Site&, Check& check) { judge_python_golden(all, check); }});
    kinds.push_back({.name = "python.swift." + name,
                     .part = Part::Python,
                     .from = Level::Full,
                     .title = {"swift sft gives the golden run " + name, "swift sft 得到与基准运行相同的结果：" + name},
                     .who = Who::EveryRank,
                     .measure = [name](const Site& site) { return measure_swift(site, name); },
                     .judge = [](const auto& all, const Site&, Check& check) { judge_python_golden(all, check); }});
    kinds.push_back(
        {.name = "python.adapter." + name,
         .part = Part::Python,
         .from = Level::Full,
         .title = {"The adapter of " + name + " is the same model in PEFT", name + " 的适配器在 PEFT 中是同一模型"},
         .who = Who::FirstRank,
         .measure = [name](const Site& site) { return measure_adapter(site, name); },
         .judge = [](const auto& all, const Site&, Check& check) { judge_adapter(all, check); }});
  }
  return kinds;
}

}  // namespace sealift::verify
