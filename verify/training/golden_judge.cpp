// SPDX-License-Identifier: Apache-2.0
// The golden run as it was recorded, held against what this site computed, and which side is wrong.
// Pure; see golden.hpp.
// Only the crew that recorded it can be held to the bit: others add up in another order.
#include "verify/conduct/culprits.hpp"
#include "verify/training/by_rank.hpp"
#include "verify/training/golden.hpp"

namespace sealift::verify {
namespace {

using Json = nlohmann::json;

bool judge_inputs(const std::vector<Measured>& all, Check& check) {
  Culprits culprits;
  for (const auto& measured : all) {
    if (!measured.values.is_object()) continue;
    for (const auto& changed : measured.values.value("changed", Json::array())) {
      culprits.add(on_host(changed.get<std::string>(), measured.host),
                   {"is not the file that the golden run read", "不是基准运行所读的文件"});
    }
  }
  culprits.accuse(check);
  return !culprits.empty();
}

Series golden_series(const Golden& golden) {
  return {.name = {"the golden run", "基准运行"}, .losses = golden.losses, .norms = golden.norms};
}

/// The crew that recorded it: its curve and, held to the bit, its weights.
bool judge_as_recorded(const Golden& golden, const Json& ran, const Series& series, double tolerance, Check& check) {
  judge_curves(series, golden_series(golden), tolerance, check);
  const bool same_weights = ran.at("weights").get<std::string>() == golden.weights;
  check.facts.push_back({{"final weights", "最终权重"},
                         same_weights ? Phrase{"the same bits", "逐位相同"} : Phrase{"other bits", "不相同"}});
  if (tolerance > 0 || same_weights || check.outcome == Outcome::Fail) return check.outcome == Outcome::Pass;
  check.outcome = Outcome::Fail;
  check.reason = {
      "all losses are the golden run's, but the final weights are not: what is saved differs, or the last "
      "step computed otherwise",
      "损失值与基准运行一致，但最终权重不同：保存的内容或最后一步的计算有差异"};
  return false;
}

bool agree(const Series& ours, const Series& reference, double tolerance) {
  Check between;
  judge_curves(ours, reference, tolerance, between);
  return between.outcome == Outcome::Pass;
}

/// One process differs from the golden run: do the ranks together side with it?
void say_which_side(const Series& alone, const Series* world, double tolerance, Check& check) {
  if (!world) {
    append(check.reason, {"this device, its software or the golden run is wrong; the Python part says which",
                          "本设备、其软件或基准运行有误；Python 部分会说明是哪一方"});
    return;
  }
  if (agree(*world, alone, tolerance)) {
    append(check.reason,
           {"this site's ranks and its single process agree with each other: the golden run is of other "
            "weights or data, or all devices here compute otherwise",
            "本站点的多进程与单进程彼此一致：基准运行使用了不同的权重或数据，或本站点所有设备的计算不同"});
  } else {
    append(check.reason,
           {"and this site's ranks and its single process do not agree with each other: the site is wrong",
            "且本站点的多进程与单进程也不一致：问题在本站点"});
  }
}

/// What this site computed, and by what it is held to the golden run.
struct GoldenRuns {
  Series alone;
  const Json* as_recorded = nullptr;  ///< the very crew; of one rank that which ran alone
  std::optional<Series> ranks, world;
  double stated = 0;
  bool to_the_bit = false;
};

/// NCCL adds up the values of three ranks and more in the order of its rings, which follows the wiring.
bool may_be_held_to_the_bit(const Golden& golden, const Json& result) {
  const auto device = result.value("device", Json::object());
  const bool on_gpus = device.is_object() && device.contains("name");
  return golden.ranks <= 2 || !on_gpus;
}

GoldenRuns golden_runs_of(const Golden& golden, const Json& values, Check& check) {
  const auto& alone = values.at("alone");
  GoldenRuns runs{.alone = series_of(alone, {"one process here", "本站点单进程"}), .ranks = {}, .world = {}};
  if (golden.ranks == 1) {
    runs.as_recorded = &alone;
  } else if (values.contains("recorded")) {
    const auto count = std::to_string(golden.ranks);
    runs.as_recorded = &values.at("recorded");
    runs.ranks =
        series_of(*runs.as_recorded, {count + " ranks here as recorded", "按录制方式运行的 " + count + " 个进程"});
  }
  if (values.contains("world")) {
    const auto count = std::to_string(values.at("world").at("ranks").get<int>());
    runs.world = series_of(values.at("world"), {count + " ranks here", "本站点 " + count + " 个进程"});
  }
  const auto device = alone.at("device").get<std::string>(), arch = alone.at("arch").get<std::string>();
  const auto torch = alone.at("result").at("torch_version").get<std::string>();
  const bool same = device == golden.device && arch == golden.arch && torch == golden.torch;
  runs.stated = tolerance_of(golden, arch, device);
  runs.to_the_bit = same && runs.as_recorded && may_be_held_to_the_bit(golden, runs.as_recorded->at("result"));
  check.facts.push_back(
      {{"recorded on", "录制于"}, golden.device + " (" + golden.arch + "), LibTorch " + golden.torch});
  if (golden.ranks > 1) {
    const auto count = std::to_string(golden.ranks);
    check.facts.push_back(
        {{"recorded by", "录制者"}, {count + " ranks by " + golden.method, count + " 个进程，" + golden.method}});
  }
  check.facts.push_back({{"run on", "运行于"}, device + " (" + arch + "), LibTorch " + torch});
  check.facts.push_back({{"held to", "比较标准"},
                         runs.to_the_bit ? Phrase{"the bit, the device being of the same kind", "设备同类，须逐位相同"}
                                         : Phrase{"the stated tolerance", "所声明的容差"}});
  return runs;
}

void say_what_was_not_run(const Golden& golden, const Json& values, Check& check) {
  if (values.value("no_ranks", false)) {
    const auto count = std::to_string(golden.ranks);
    append(check.reason, {"not run as recorded, this host having fewer than " + count + " GPUs",
                          "未按录制方式运行：本主机的 GPU 少于 " + count + " 个"});
  }
  if (values.value("no_world", false)) {
    append(check.reason, {"not run by all ranks, which do not divide the rows of a step",
                          "未由全部进程运行：进程数不能整除每步的行数"});
  }
}

const Phrase kByOwnMethod{"the ranks together, by the site's method", "全部进程（按本站点方法）"};
const Phrase kAsRecorded{"the ranks together, as recorded", "全部进程（按录制方式）"};

/// One process agrees with the golden run and `who`, who train together, do not.
void blame_ranks(const Phrase& who, Check& check) {
  Culprits culprits;
  culprits.add(who,
               {"one process here agrees with the golden run: what differs is how this site's ranks train together",
                "本站点单进程与基准运行一致：差异来自多进程并行训练"});
  culprits.accuse(check);
}

/// One process agrees; several could not be expected to.
void only_one_is_held(const std::string& by_rank, Check& check) {
  const auto why = why_by_rank(by_rank);
  const auto agrees = check.reason;
  check.outcome = Outcome::NotRun;
  check.reason = {"the ranks of this site cannot be held to what one process recorded: " + why.en +
                      "; record it with " + instead_of(by_rank),
                  "本站点的多个进程无法与单进程的记录比较：" + why.zh + "；请用 " + instead_of(by_rank) + " 重新录制"};
  append(check.reason, agrees);
}

void judge_recorded_by_one(const Golden& golden, const GoldenRuns& runs, const Json& values, Check& check) {
  if (!judge_as_recorded(golden, *runs.as_recorded, runs.alone, runs.to_the_bit ? 0 : runs.stated, check)) {
    return say_which_side(runs.alone, runs.world ? &*runs.world : nullptr, runs.stated, check);
  }
  say_what_was_not_run(golden, values, check);
  if (values.contains("by_rank")) return only_one_is_held(values.at("by_rank").get<std::string>(), check);
  if (!runs.world) return;
  judge_curves(*runs.world, golden_series(golden), runs.stated, check);
  if (check.outcome == Outcome::Fail) blame_ranks(kByOwnMethod, check);
}

void judge_recorded_by_several(const Golden& golden, const GoldenRuns& runs, const Json& values, Check& check) {
  const auto reference = golden_series(golden);
  bool ranks_agree = true;
  if (runs.ranks) {
    ranks_agree = judge_as_recorded(golden, *runs.as_recorded, *runs.ranks, runs.to_the_bit ? 0 : runs.stated, check);
  }
  const bool alone_agrees = agree(runs.alone, reference, runs.stated);
  judge_curves(runs.alone, reference, runs.stated, check);
  if (runs.world) judge_curves(*runs.world, reference, runs.stated, check);
  say_what_was_not_run(golden, values, check);
  if (check.outcome != Outcome::Fail) return;
  if (alone_agrees) {
    return blame_ranks(ranks_agree ? kByOwnMethod : kAsRecorded, check);
  }
  if (runs.ranks && ranks_agree) {
    append(check.reason,
           {"the ranks here give the golden run and one process does not: the job depends on its number of "
            "ranks, or a single process computes otherwise here",
            "多进程得到基准运行的结果而单进程没有：任务的结果依赖进程数，或本站点单进程的计算不同"});
    return;
  }
  const auto* together = runs.ranks ? &*runs.ranks : runs.world ? &*runs.world : nullptr;
  say_which_side(runs.alone, together, runs.stated, check);
}

}  // namespace

void judge_golden(const std::vector<Measured>& all, Check& check) {
  if (judge_inputs(all, check) || judge_failures(all, check)) return;
  const auto& values = of_first(all);
  const auto golden = golden_from(values.at("golden"), "the golden run");
  const auto runs = golden_runs_of(golden, values, check);
  if (golden.ranks == 1) return judge_recorded_by_one(golden, runs, values, check);
  judge_recorded_by_several(golden, runs, values, check);
}

}  // namespace sealift::verify
