// SPDX-License-Identifier: Apache-2.0
// The golden run, recorded and compared.
// See golden.hpp.
// Inside it is run twice: as one process, which must give the very bits on the same kind of device, and by all ranks.
// The two together say which side is wrong.
#include "training/golden.hpp"

#include "run/child_watch.hpp"

#include "sealift/toml.hpp"
#include "sealift/train/checkpoint/digest.hpp"
#include "training/plan.hpp"

#include <sys/utsname.h>

#include <algorithm>
#include <fstream>
#include <set>

namespace sealift::verify {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

void hash_file_into(train::Sha256& digest, const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::vector<char> buffer(1 << 20);
  while (in.read(buffer.data(), static_cast<std::streamsize>(buffer.size())) || in.gcount() > 0) {
    digest.update(buffer.data(), static_cast<std::size_t>(in.gcount()));
  }
  if (in.bad() || !in.eof()) throw std::runtime_error("cannot read " + file.string());
}

std::string digest_of_files(const std::vector<fs::path>& files) {
  train::Sha256 digest;
  for (const auto& file : files) hash_file_into(digest, file);
  return digest.hex();
}

/// The regular files at `place`, itself or below it, sorted.
std::vector<fs::path> files_at_place(const fs::path& place) {
  if (!fs::is_directory(place)) return {place};
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(place)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// The processor with its model and vector units: virtual machines give one name to several kinds.
std::string processor_name() {
  std::map<std::string, std::string> first;
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    const auto key = line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1);
    const auto begin = line.find_first_not_of(" \t", colon + 1);
    if (begin != std::string::npos) first.emplace(key, line.substr(begin));
  }
  auto name = first.contains("model name") ? first["model name"] : "a processor of " + arch_here();
  for (const char* key : {"cpu family", "model", "CPU implementer", "CPU part"}) {
    if (first.contains(key)) name += std::string(", ") + key + " " + first[key];
  }
  const auto units = " " + first["flags"] + " " + first["Features"] + " ";
  for (const char* unit : {"avx2", "avx512f", "avx512_bf16", "amx_tile", "sve"}) {
    if (units.find(std::string(" ") + unit + " ") != std::string::npos) name += std::string(" ") + unit;
  }
  return name;
}

/// The job as it is run below `prefix`: whole paths, nothing saved on the way.
TrainingJob placed(const Golden& golden, const fs::path& prefix, const std::string& name) {
  auto job = golden.job;
  job.name = name;
  for (auto& [key, value] : job.settings) {
    if (is_path_setting(key)) value = (prefix / value).string();
  }
  if (job.verb != "run") job.settings["save_strategy"] = "no";
  return job;
}

/// SHA-256 of the parameters as the job saved them.
std::string weights_of(const Site& site, const TrainingJob& job, const Json& result) {
  auto folder = site.work / job.name;
  if (job.verb == "run") {
    const auto file = folder / "model.safetensors";
    const auto done = run_for(
        site, {(site.prefix / "bin/sealift-train").string(), "export", (folder / "saved").string(), file.string()},
        without_launcher(), std::chrono::minutes(30));
    if (!done.good()) throw std::runtime_error("the final weights cannot be exported: " + done.err);
    return digest_of_files({file});
  }
  folder /= result.at("tuner_type") == "none" ? "model" : "adapter";
  auto files = files_at_place(folder);
  std::erase_if(files, [](const fs::path& file) { return file.extension() != ".safetensors"; });
  if (files.empty()) throw std::runtime_error(folder.string() + " has no weights");
  return digest_of_files(files);
}

/// `golden`'s job as one process on rank 0, with its weights and where it ran.
Json run_alone(const Site& site, const Golden& golden) {
  auto job = placed(golden, site.prefix, "golden_alone");
  job.settings["threads"] = std::to_string(golden.threads);
  if (job.verb == "run") job.settings["checkpoint_folder"] = (site.work / job.name / "saved").string();
  auto ran = run_job(site, job, {.crew = Crew::One});
  if (!ran.contains("result")) return ran;
  ran["weights"] = weights_of(site, job, ran.at("result"));
  ran["device"] = device_name(ran.at("result"));
  ran["arch"] = arch_here();
  return ran;
}

/// The same by all ranks of the site; nothing where they cannot share its rows.
std::optional<TrainingJob> for_world(const Site& site, const Golden& golden) {
  auto job = placed(golden, site.prefix, "golden_world");
  const auto expected = training_expectation(site);
  job.settings["parallel_method"] = expected.method.value_or("fsdp");
  job.settings["timeout_seconds"] = "1800";  // rank 0 trains alone first
  if (expected.method == "hsdp") job.settings["shard_size"] = std::to_string(shard_size_of(site, site.world_size));
  if (job.verb == "run") return job;
  if (golden.rows % site.world_size != 0) return std::nullopt;
  const auto of_rank = golden.rows / site.world_size;
  auto at_once = std::stoll(job.settings.at("per_device_train_batch_size"));
  while (of_rank % at_once != 0) --at_once;
  job.settings["per_device_train_batch_size"] = std::to_string(at_once);
  job.settings["gradient_accumulation_steps"] = std::to_string(of_rank / at_once);
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

Json measure_golden(const Site& site, const std::string& name) {
  const auto golden = read_golden(golden_folder(site.prefix) / (name + ".json"));
  Json values = Json::object();
  if (site.is_first_of_host()) values["changed"] = changed_inputs(golden, site.prefix);
  auto alone = run_alone(site, golden);
  if (site.rank == 0) {
    values["golden"] = to_json(golden);
    values["alone"] = alone;
    if (alone.contains("failed")) values.update(alone);
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

bool judge_inputs(const std::vector<Measured>& all, Check& check) {
  for (const auto& measured : all) {
    if (!measured.values.is_object()) continue;
    for (const auto& path : measured.values.value("changed", Json::array())) {
      check.at_fault.push_back(path.get<std::string>() + " on " + measured.host);
    }
  }
  if (check.at_fault.empty()) return false;
  const auto count = std::to_string(check.at_fault.size());
  check.outcome = Outcome::Fail;
  check.reason = {check.at_fault.front() + " is not the file that the golden run read (" + count + " in all)",
                  check.at_fault.front() + " 不是基准运行所读的文件（共 " + count + " 个）"};
  return true;
}

Series golden_series(const Golden& golden) {
  return {.name = {"the golden run", "基准运行"}, .losses = golden.losses, .norms = golden.norms};
}

void append_reason(Sentence& reason, const Sentence& more) {
  reason.en += "; " + more.en;
  reason.zh += "；" + more.zh;
}

/// The one process against the golden run: its curve, and on the same kind of device its weights.
bool judge_alone(const Golden& golden, const Json& alone, double tolerance, Check& check) {
  judge_curves(series_of(alone, {"one process here", "本站点单进程"}), golden_series(golden), tolerance, check);
  const bool same_weights = alone.at("weights").get<std::string>() == golden.weights;
  check.facts.emplace_back("final weights", same_weights ? "the same bits" : "other bits");
  if (tolerance > 0 || same_weights || check.outcome == Outcome::Fail) return check.outcome == Outcome::Pass;
  check.outcome = Outcome::Fail;
  check.reason = {
      "all losses are the golden run's, but the final weights are not: what is saved differs, or the last "
      "step computed otherwise",
      "损失值与基准运行一致，但最终权重不同：保存的内容或最后一步的计算有差异"};
  return false;
}

/// One process differs from the golden run: do the ranks together side with it?
void say_which_side(const Series& alone, const Series* world, double tolerance, Check& check) {
  if (!world) {
    append_reason(check.reason, {"this device, its software or the golden run is wrong; the Python part says which",
                                 "本设备、其软件或基准运行有误；请参见 Python 部分"});
    return;
  }
  Check between;
  judge_curves(*world, alone, tolerance, between);
  if (between.outcome == Outcome::Pass) {
    append_reason(check.reason,
                  {"this site's ranks and its single process agree with each other: the golden run is of other "
                   "weights or data, or all devices here compute otherwise",
                   "本站点的多进程与单进程彼此一致：基准运行使用了不同的权重或数据，或本站点所有设备的计算不同"});
  } else {
    append_reason(check.reason,
                  {"and this site's ranks and its single process do not agree with each other: the site is wrong",
                   "且本站点的多进程与单进程也不一致：问题在本站点"});
  }
}

CheckKind kind_of_golden(const std::string& name) {
  return {.name = "training.golden." + name,
          .part = Part::Training,
          .from = Level::Quick,
          .title = {"The golden run " + name + " gives here what it gave outside",
                    "基准运行 " + name + " 在此处得到与外部相同的结果"},
          .who = Who::EveryRank,
          .measure = [name](const Site& site) { return measure_golden(site, name); },
          .judge = [](const auto& all, const Site&, Check& check) { judge_golden(all, check); }};
}

CheckKind no_golden() {
  return {.name = "training.golden",
          .part = Part::Training,
          .from = Level::Quick,
          .title = {"A golden run gives here what it gave outside", "基准运行在此处得到与外部相同的结果"},
          .who = Who::FirstRank,
          .measure = [](const Site&) -> Json {
            throw NotRun({"the bundle carries no golden run; record one and name it in the job file: [[golden]]",
                          "包中没有基准运行；请录制并写入作业文件：[[golden]]"});
          },
          .judge = [](const auto&, const Site&, Check&) {}};
}

std::string text_of_node(const toml::node& node, const std::string& where) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  if (const auto* truth = node.as_boolean()) return truth->get() ? "true" : "false";
  if (const auto* number = node.as_floating_point()) return Json(number->get()).dump();
  throw std::invalid_argument(where + " is neither a text, a number, true nor false");
}

/// The job as a golden file that has computed nothing yet.
Golden read_golden_job(const fs::path& file) {
  toml::table table;
  try {
    table = toml::parse_file(file.string());
  } catch (const toml::parse_error& error) {
    throw std::invalid_argument(file.string() + ":" + std::to_string(error.source().begin.line) + ": " +
                                std::string(error.description()));
  }
  Golden golden;
  for (const auto& [key, value] : table) {
    const auto where = file.string() + ": " + std::string(key.str());
    const auto* inner = value.as_table();
    if (key.str() == "name")
      golden.name = text_of_node(value, where);
    else if (key.str() == "verb")
      golden.job.verb = text_of_node(value, where);
    else if (key.str() == "settings" && inner) {
      for (const auto& [name, text] : *inner) golden.job.settings[std::string(name.str())] = text_of_node(text, where);
    } else if (key.str() == "tolerances" && inner) {
      for (const auto& [name, text] : *inner) {
        golden.tolerances[std::string(name.str())] = std::stod(text_of_node(text, where));
      }
    } else {
      throw std::invalid_argument(where + " is unknown; expected name, verb, [settings], [tolerances]");
    }
  }
  if (golden.job.verb == "run") return golden;
  golden.rows = 1;
  for (const char* name : {"per_device_train_batch_size", "gradient_accumulation_steps"}) {
    const auto& settings = golden.job.settings;
    if (!settings.contains(name)) {
      throw std::invalid_argument(file.string() + ": [settings] has no " + name +
                                  "; a golden run says how many rows a step has");
    }
    golden.rows *= std::stoll(settings.at(name));
  }
  return golden;
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

std::string arch_here() {
  utsname name{};
  uname(&name);
  return name.machine;
}

std::string device_name(const Json& result) {
  const auto& device = result.at("device");
  return device.contains("name") ? device.at("name").get<std::string>() : processor_name();
}

std::map<std::string, std::string> inputs_of(const TrainingJob& job, const fs::path& prefix) {
  std::map<std::string, std::string> inputs;
  for (const auto& [key, value] : job.settings) {
    if (!is_path_setting(key)) continue;
    for (const auto& file : files_at_place(prefix / value)) {
      inputs[file.lexically_relative(prefix).string()] = digest_of_files({file});
    }
  }
  return inputs;
}

Golden record_golden(const Site& site, const fs::path& file) {
  auto golden = read_golden_job(file);
  for (const auto& [key, value] : golden.job.settings) {
    if (is_path_setting(key) && !is_safe_path(value)) {
      throw std::invalid_argument(file.string() + ": " + key + " is " + value +
                                  "; expected a path below --prefix, as it will be in the bundle");
    }
  }
  golden.inputs = inputs_of(golden.job, site.prefix);
  golden.threads = 1;
  const auto ran = run_alone(site, golden);
  if (ran.contains("failed")) throw std::runtime_error("the job failed: " + ran.at("failed").get<std::string>());
  const auto series = series_of(ran, {});
  golden.losses = series.losses;
  golden.norms = series.norms;
  golden.weights = ran.at("weights");
  golden.device = ran.at("device");
  golden.arch = ran.at("arch");
  golden.torch = ran.at("result").at("torch_version");
  return golden_from(Json(to_json(golden)), file.string());  // what would be refused inside is refused now
}

void judge_golden(const std::vector<Measured>& all, Check& check) {
  if (judge_inputs(all, check) || judge_failures(all, check)) return;
  const auto& values = of_first(all);
  const auto golden = golden_from(values.at("golden"), "the golden run");
  const auto& alone = values.at("alone");
  const auto device = alone.at("device").get<std::string>(), arch = alone.at("arch").get<std::string>();
  const double stated = tolerance_of(golden, arch, device);
  const auto torch = alone.at("result").at("torch_version").get<std::string>();
  const bool same = device == golden.device && arch == golden.arch && torch == golden.torch;
  check.facts.emplace_back("recorded on", golden.device + " (" + golden.arch + "), LibTorch " + golden.torch);
  check.facts.emplace_back("run on", device + " (" + arch + "), LibTorch " + torch);
  check.facts.emplace_back("held to", same ? "the bit, the device being of the same kind" : "the stated tolerance");
  const auto mine = series_of(alone, {"one process here", "本站点单进程"});
  const auto world =
      values.contains("world")
          ? std::optional(
                series_of(values.at("world"),
                          {std::to_string(values.at("world").at("ranks").get<int>()) + " ranks here", "本站点多进程"}))
          : std::nullopt;
  const bool alone_agrees = judge_alone(golden, alone, same ? 0 : stated, check);
  if (!alone_agrees) return say_which_side(mine, world ? &*world : nullptr, stated, check);
  if (values.value("no_world", false)) {
    append_reason(check.reason,
                  {"not run by all ranks, which do not divide the " + std::to_string(golden.rows) + " rows of a step",
                   "未由全部进程运行：进程数不能整除每步的 " + std::to_string(golden.rows) + " 行"});
  }
  if (!world) return;
  judge_curves(*world, golden_series(golden), stated, check);
  if (check.outcome != Outcome::Fail) return;
  check.at_fault.push_back("the ranks together, by the site's method");
  append_reason(check.reason,
                {"one process here agrees with the golden run: what differs is how this site's ranks train together",
                 "本站点单进程与基准运行一致：差异来自多进程并行训练"});
}

std::vector<CheckKind> golden_checks(const std::vector<std::string>& names) {
  std::vector<CheckKind> kinds;
  for (const auto& name : names) kinds.push_back(kind_of_golden(name));
  if (kinds.empty()) kinds.push_back(no_golden());
  return kinds;
}

}  // namespace sealift::verify
