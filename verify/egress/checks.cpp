// SPDX-License-Identifier: Apache-2.0
// The list of this room's checks: what Python's libraries do when they are imported, and what training does.
// See checks.hpp.
// The variables that keep libraries offline are taken away for it: a site must know what they would do without.
#include "verify/egress/checks.hpp"

#include "verify/conduct/culprits.hpp"
#include "verify/conduct/last_error.hpp"
#include "verify/egress/python_stack.hpp"
#include "verify/egress/watch.hpp"
#include "verify/verdict/json.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

namespace sealift::verify {
namespace {

using Json = nlohmann::json;
constexpr int kAbsent = 77;

constexpr char kImport[] = R"(import importlib, importlib.util, sys, threading, time
if importlib.util.find_spec(sys.argv[1]) is None:
    sys.exit(77)
importlib.import_module(sys.argv[1])
time.sleep(1)
end = time.monotonic() + 30  # for what a library does in a thread
while threading.active_count() > 1 and time.monotonic() < end:
    time.sleep(0.1))";

constexpr std::array kOffline{"HF_HUB_OFFLINE",   "TRANSFORMERS_OFFLINE",     "HF_DATASETS_OFFLINE",
                              "DO_NOT_TRACK",     "HF_HUB_DISABLE_TELEMETRY", "DISABLE_TELEMETRY",
                              "WANDB_MODE",       "WANDB_DISABLED",           "VLLM_NO_USAGE_STATS",
                              "VLLM_DO_NOT_TRACK"};
constexpr std::array kProxies{"http_proxy", "https_proxy", "all_proxy", "ftp_proxy",
                              "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "FTP_PROXY"};
constexpr std::array<std::string_view, 18> kLaunchers{"RANK=",
                                                      "WORLD_SIZE=",
                                                      "LOCAL_RANK=",
                                                      "LOCAL_WORLD_SIZE=",
                                                      "MASTER_ADDR=",
                                                      "MASTER_PORT=",
                                                      "NNODES=",
                                                      "NODE_RANK=",
                                                      "NPROC_PER_NODE=",
                                                      "PET_",
                                                      "TORCHELASTIC_",
                                                      "OMPI_",
                                                      "PMI",
                                                      "MV2_",
                                                      "MPI_",
                                                      "SLURM_",
                                                      "PALS_",
                                                      "HYDRA_"};

template <class Names>
void remove_all(std::vector<Variable>& variables, const Names& names) {
  for (const auto& name : names) variables.emplace_back(name, std::nullopt);
}

/// Not as a rank of this program's world, not kept offline, not through a proxy: each attempt goes where it is meant
/// to.
std::vector<Variable> bare_variables(const Site& site) {
  std::vector<Variable> variables;
  remove_all(variables, kOffline);
  remove_all(variables, kProxies);
  for (char** variable = environ; *variable; ++variable) {
    const std::string_view text(*variable);
    const bool is_launcher =
        std::any_of(kLaunchers.begin(), kLaunchers.end(), [&](auto p) { return text.starts_with(p); });
    if (is_launcher) variables.emplace_back(std::string(text.substr(0, text.find('='))), std::nullopt);
  }
  variables.emplace_back("HOME", site.work.string());  // caches and settings of the user play no part
  variables.emplace_back("PYTHONDONTWRITEBYTECODE", "1");
  return variables;
}

Json expectations(const Site& site) {
  return site.expected.value("egress", Json::object());
}

Allowed allowed_at(const Site& site) {
  const auto entries = expectations(site).value("allowed", std::vector<std::string>());
  return {entries, own_addresses(), site.hostname};
}

Json run_job(const Phrase& what, const std::vector<std::string>& argv, std::vector<Variable> variables,
             std::chrono::seconds limit, const Site& site) {
  const auto result = run_watched(argv, variables, limit, site.work, allowed_at(site));
  Json json{{"attempts", attempts_json(result.attempts)},
            {"calls", result.calls},
            {"left", result.left},
            {"io_uring", result.io_uring}};
  json["what"] = to_json(what);
  json["absent"] = result.child.code == kAbsent;
  if (result.child.timed_out)
    json["fault"] = to_json(Phrase{"not done after " + std::to_string(limit.count()) + " s",
                                   std::to_string(limit.count()) + " 秒内未完成"});
  if (!result.child.good() && !result.child.timed_out && result.child.code != kAbsent) {
    const auto code = std::to_string(result.child.code), said = last_error(result.child.err);
    json["fault"] = to_json(Phrase{"exit code " + code + ": " + said, "退出码 " + code + "：" + said});
  }
  return json;
}

Json measure_imports(const Site& site) {
  const auto python = site.prefix / "bin" / "python3";
  if (!std::filesystem::exists(python)) {
    throw NotRun({"there is no Python at " + python.string(), python.string() + " 处没有 Python"});
  }
  const auto listed = expectations(site).value("imports", std::vector<std::string>());
  auto jobs = Json::array();
  for (const auto& name : listed.empty() ? std::vector<std::string>{"torch", "transformers", "swift"} : listed) {
    auto job = run_job(name, {python.string(), "-c", std::string(kNoteStacks) + kImport, name}, bare_variables(site),
                       std::chrono::seconds(300), site);
    if (job["absent"] && !listed.empty()) {
      job["fault"] = to_json(Phrase{"is in site.toml's [egress] imports and is not installed",
                                    "在 site.toml 的 [egress] imports 中，但未安装"});
    }
    jobs.push_back(std::move(job));
  }
  return {{"jobs", jobs}};
}

Json measure_training(const Site& site) {
  const auto train = site.prefix / "bin" / "sealift-train";
  if (!std::filesystem::exists(train)) {
    throw NotRun({"there is no " + train.string(), "没有 " + train.string()});
  }
  const bool cpu = site.device == "cpu";
  const auto count =
      cpu ? std::max<std::int64_t>(2, std::min<std::int64_t>(4, site.local_world_size)) : site.local_world_size;
  const auto ranks = std::to_string(count), batch = std::to_string((31 + count) / count * count);
  auto variables = bare_variables(site);
  variables.emplace_back("SEALIFT_TRAIN_DEVICE", cpu ? "cpu" : "cuda");
  return {{"jobs", Json::array({run_job({"sealift-train, " + ranks + " ranks", "sealift-train（" + ranks + " 个进程）"},
                                        {train.string(), "run", "--parallel-method", ranks == "1" ? "none" : "fsdp",
                                         "--ranks", ranks, "--global-batch", batch, "--steps", "4", "--out", "watched"},
                                        variables, std::chrono::seconds(300), site)})}};
}

/// "python3 (import torch on gpu07) asked DNS for hub.example at 10.0.0.2:53".
Phrase phrase_of(const Json& attempt, const Phrase& what, const std::string& host) {
  const auto program = phrase_from(attempt.at("program"));
  const Phrase who{program.en + " (" + what.en + " on " + host + ")",
                   program.zh + "（" + host + " 上的 " + what.zh + "）"};
  const auto to = attempt.at("destination").get<std::string>(), name = attempt.at("name").get<std::string>();
  if (!name.empty())
    return {who.en + " asked DNS for " + name + " at " + to, who.zh + "向 " + to + " 查询域名 " + name};
  const auto call = attempt.at("call").get<std::string>();
  return {who.en + " called " + call + " to " + to, who.zh + "试图连接 " + to + "（" + call + "）"};
}

struct Findings {
  Culprits attempts, left, faults;
  std::size_t jobs = 0, absent = 0;
  std::int64_t calls = 0, io_uring = 0;
  Phrase names;
};

void add_attempts(Findings& findings, const Json& attempts, const Phrase& what, const std::string& host, Check& check) {
  for (const auto& attempt : attempts) {
    const auto phrase = phrase_of(attempt, what, host);
    findings.attempts.add(phrase, "");
    check.facts.push_back({phrase, attempt.at("command_line").get<std::string>()});
    const auto stack = attempt.at("python").get<std::string>();
    if (!stack.empty()) check.facts.push_back({{"Python stack", "Python 调用栈"}, stack});
  }
}

/// A process that outlives its program could act when nobody watches: a finding of its own.
void add_left(Findings& findings, const Json& of_job, const Phrase& what, const std::string& host) {
  findings.io_uring += of_job.value("io_uring", std::int64_t{0});
  for (const auto& command : of_job.value("left", std::vector<std::string>())) {
    findings.left.add(on_host(what, host), {"left a process running that it had started: " + command,
                                            "结束后仍留有它启动的进程：" + command});
  }
}

Findings findings_of(const std::vector<Measured>& all, Check& check) {
  Findings findings;
  for (const auto& measured : all) {
    if (!measured.values.is_object()) continue;
    for (const auto& job : measured.values.at("jobs")) {
      const auto what = phrase_from(job.at("what"));
      ++findings.jobs;
      findings.absent += job.at("absent").get<bool>() ? 1 : 0;
      findings.calls += job.at("calls").get<std::int64_t>();
      if (!job.at("absent").get<bool>()) {
        findings.names.en += (findings.names.en.empty() ? "" : ", ") + what.en;
        findings.names.zh += (findings.names.zh.empty() ? "" : "、") + what.zh;
      }
      add_attempts(findings, job.at("attempts"), what, measured.host, check);
      add_left(findings, job, what, measured.host);
      if (const auto fault = job.find("fault"); fault != job.end()) {
        findings.faults.add(on_host(what, measured.host), phrase_from(*fault));
      }
    }
  }
  return findings;
}

/// Zero attempts say nothing without what did not count as one.
void show_attempts(const Findings& found, const Site& site, Check& check) {
  std::string allowed;
  for (const auto& entry : expectations(site).value("allowed", std::vector<std::string>()))
    allowed += (allowed.empty() ? "" : ", ") + entry;
  check.facts.insert(check.facts.begin(),
                     Fact{{"may be reached", "允许访问的目标"},
                          allowed.empty() ? Phrase{"only this run's hosts", "仅本次运行的主机"} : Phrase(allowed)});
  check.figures = {{.name = {"attempts to leave", "外联尝试"},
                    .value = static_cast<double>(found.attempts.count()),
                    .unit = "",
                    .at_least = {},
                    .at_most = 0.0,
                    .basis = {"nothing may leave", "不允许外联"}}};
  check.facts.insert(check.facts.begin(), Fact{{"calls looked at", "检查过的调用"}, std::to_string(found.calls)});
  if (found.io_uring == 0) return;
  const auto times = std::to_string(found.io_uring);
  check.facts.push_back({{"io_uring", "io_uring"},
                         {"asked for " + times + " times and refused, as its calls cannot be watched",
                          "请求 " + times + " 次，均被拒绝：其调用无法监视"}});
}

/// Fails `check` with `culprits`; `before` begins the reason.
void fail_with(const Phrase& before, const Culprits& culprits, Check& check) {
  culprits.accuse(check);
  check.reason = {before.en + ": " + check.reason.en, before.zh + "：" + check.reason.zh};
}

void fail_with_attempts(const Findings& found, Check& check) {
  const auto count = std::to_string(found.attempts.count());
  fail_with({count + " attempt(s) to leave", "发现 " + count + " 种外联尝试"}, found.attempts, check);
  found.left.accuse(check);
  found.faults.accuse(check);
}

void fail_with_left(const Findings& found, Check& check) {
  fail_with({"a process that was left behind may act when nobody watches", "遗留的进程可能在无人监视时有所行动"},
            found.left, check);
}

void judge_egress(const std::vector<Measured>& all, const Site& site, Check& check) {
  const auto found = findings_of(all, check);
  if (found.absent < found.jobs) show_attempts(found, site, check);  // what was not run shows no zero
  if (!found.attempts.empty()) {
    fail_with_attempts(found, check);
  } else if (!found.left.empty()) {
    fail_with_left(found, check);
  } else if (!found.faults.empty()) {
    fail_with({"could not be watched to its end", "未能监视到结束"}, found.faults, check);
  } else if (found.absent == found.jobs) {
    check.reason = {"none of the libraries is installed", "这些库均未安装"};
  } else {
    check.outcome = Outcome::Pass;
    check.reason = {"nothing tried to leave: " + found.names.en, "没有外联尝试：" + found.names.zh};
  }
}

Json measure_run(const Site& site, const std::function<std::vector<Attempt>()>& packets) {
  auto watched = site.watched;
  if (packets) {
    watched.push_back({{"check", "the run"},
                       {"host", site.host},
                       {"programs", 0},
                       {"unwatched", 0},
                       {"why", ""},
                       {"calls", 0},
                       {"counted", true},
                       {"attempts", attempts_json(packets())}});
  }
  if (!watched.empty()) return {{"watched", watched}};
  throw NotRun({"the checks of this run started no program", "本次运行的检查没有启动任何程序"});
}

/// Of rank 0: what was watched in each check, on each rank.
void judge_run(const std::vector<Measured>& all, const Site& site, Check& check) {
  Findings findings;
  std::int64_t programs = 0, unwatched = 0;
  std::set<std::string> checks;
  std::string why;
  bool counted = false;
  for (const auto& one : all.at(0).values.at("watched")) {
    programs += one.at("programs").get<std::int64_t>();
    unwatched += one.at("unwatched").get<std::int64_t>();
    findings.calls += one.at("calls").get<std::int64_t>();
    if (!one.at("why").get<std::string>().empty()) why = one.at("why");
    const bool of_packets = one.value("counted", false);
    counted = counted || of_packets;
    if (!of_packets) checks.insert(one.at("check").get<std::string>());
    const auto what = of_packets ? Phrase{"the run", "本次运行"} : Phrase(one.at("check").get<std::string>());
    add_attempts(findings, one.at("attempts"), what, one.at("host"), check);
    add_left(findings, one, what, one.at("host"));
  }
  show_attempts(findings, site, check);
  check.facts.insert(check.facts.begin(),
                     Fact{{"programs watched", "监视过的程序"}, std::to_string(programs - unwatched)});
  if (counted) {
    check.facts.push_back(
        {{"network", "网络"}, {"one of its own, whose packets were counted", "独立网络，其数据包均被计数"}});
  }
  if (!findings.attempts.empty()) return fail_with_attempts(findings, check);
  if (!findings.left.empty()) return fail_with_left(findings, check);
  const auto n = std::to_string(programs), m = std::to_string(unwatched), of = std::to_string(checks.size());
  if (unwatched > 0 && !counted) {
    check.reason = {m + " of " + n + " programs could not be watched (seccomp user notification): " + why,
                    n + " 个程序中有 " + m + " 个无法监视（seccomp 用户通知）：" + why};
    return;
  }
  check.outcome = Outcome::Pass;
  check.reason = {"nothing tried to leave: " + n + " programs that " + of + " checks started",
                  "没有外联尝试：" + of + " 项检查启动的 " + n + " 个程序"};
  if (!counted) return;
  check.reason.en += ", and the ranks themselves, in a network of their own";
  check.reason.zh += "，以及在独立网络中运行的各进程本身";
}

}  // namespace

std::vector<CheckKind> egress_checks(std::function<std::vector<Attempt>()> packets) {
  return {{.name = "egress.imports",
           .part = Part::Egress,
           .from = Level::Quick,
           .title = {"importing the carried libraries contacts nobody", "导入随包的库不会联系任何外部地址"},
           .who = Who::FirstRank,
           .measure = measure_imports,
           .judge = judge_egress},
          {.name = "egress.training",
           .part = Part::Egress,
           .from = Level::Quick,
           .title = {"a training job contacts nobody but its ranks", "训练任务只与自身各进程通信"},
           .who = Who::OneOfHost,
           .measure = measure_training,
           .judge = judge_egress},
          {.name = "egress.run",
           .part = Part::Egress,
           .from = Level::Quick,
           .title = {"no program that the checks of this run start contacts anybody outside",
                     "本次运行的检查所启动的程序均不联系任何外部地址"},
           .who = Who::FirstRank,
           .measure = [packets = std::move(packets)](const Site& site) { return measure_run(site, packets); },
           .judge = judge_run,
           .of_whole_run = true}};
}

}  // namespace sealift::verify
