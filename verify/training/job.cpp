// SPDX-License-Identifier: Apache-2.0
// The child's arguments and variables, and its files read back.
// See job.hpp.
// Every variable that could change a job is removed, so that a shell's settings are not taken for the site's fault.
#include "verify/training/job.hpp"

#include "trainer/json_numbers.hpp"

#include "verify/conduct/child_watch.hpp"
#include "verify/conduct/last_error.hpp"

#include <unistd.h>

#include <fstream>

namespace sealift::verify {
namespace {

using Json = nlohmann::json;

constexpr auto kLimit = std::chrono::hours(2);

bool is_launcher_variable(const std::string& name) {
  for (const char* prefix : {"SEALIFT_TRAIN_", "TORCHELASTIC_", "PET_", "OMPI_COMM_", "MV2_COMM_", "PMI_", "PMIX_"}) {
    if (name.starts_with(prefix)) return true;
  }
  for (const char* whole :
       {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "NNODES", "NODE_RANK", "NPROC_PER_NODE",
        "MASTER_ADDR", "MASTER_PORT", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "SLURM_PROCID"}) {
    if (name == whole) return true;
  }
  return false;
}

std::vector<Variable> variables_of_job(const Site& site, const HowToRun& how) {
  auto variables = without_launcher();
  if (how.crew != Crew::World || site.world_size == 1) return variables;
  const auto port = how.port < site.free_ports.size() ? site.free_ports[how.port] : site.free_port;
  const auto set = [&](const char* name, const std::string& value) { variables.emplace_back(name, value); };
  set("RANK", std::to_string(site.rank));
  set("WORLD_SIZE", std::to_string(site.world_size));
  set("LOCAL_RANK", std::to_string(site.local_rank));
  set("LOCAL_WORLD_SIZE", std::to_string(site.local_world_size));
  set("MASTER_ADDR", site.master_addr);
  set("MASTER_PORT", std::to_string(port));
  return variables;
}

std::vector<std::string> argv_of_job(const Site& site, const TrainingJob& job, const HowToRun& how,
                                     const std::filesystem::path& out) {
  std::vector<std::string> argv{(site.prefix / "bin/sealift-train").string(), job.verb};
  const auto add = [&](const std::string& name, const std::string& value) {
    argv.push_back("--" + name);
    argv.push_back(value);
  };
  add(job.verb == "run" ? "out" : "output_dir", out.string());
  add("device", device_kind(site));
  const bool starts_ranks = how.crew == Crew::OfFirst || (how.crew == Crew::World && site.world_size == 1);
  if (starts_ranks) add("ranks", std::to_string(how.local_ranks));
  for (const auto& [name, value] : job.settings) {
    auto flag = name;
    if (job.verb == "run") std::replace(flag.begin(), flag.end(), '_', '-');
    add(flag, value);
  }
  return argv;
}

/// The gradient norm of each step. A resumed run has some steps twice: the last counts.
std::vector<double> norms_of(const std::filesystem::path& log) {
  std::map<std::int64_t, double> norms;
  std::ifstream in(log);
  for (std::string line; std::getline(in, line);) {
    const auto json = Json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("step") || !json.contains("grad_norm")) continue;
    norms[json.at("step").get<std::int64_t>()] = trainer::number_or_nan(json.at("grad_norm"));
  }
  std::vector<double> result;
  for (const auto& [step, norm] : norms) result.push_back(norm);
  return result;
}

Json read_training_result(const std::filesystem::path& file) {
  std::ifstream in(file);
  auto json = Json::parse(in, nullptr, false);
  if (!json.is_object() || !json.contains("losses")) throw std::runtime_error(file.string() + " is not a result");
  return json;
}

}  // namespace

std::vector<Variable> without_launcher() {
  std::vector<Variable> variables;
  for (char** variable = environ; *variable; ++variable) {
    const std::string text = *variable;
    const auto name = text.substr(0, text.find('='));
    if (is_launcher_variable(name)) variables.emplace_back(name, std::nullopt);
  }
  return variables;
}

std::string device_kind(const Site& site) {
  return site.device.starts_with("cuda") ? "cuda" : "cpu";
}

std::int64_t crew_size(const Site& site, std::int64_t local_ranks) {
  return site.world_size == 1 ? local_ranks : site.world_size;
}

void need_ranks(const Site& site) {
  if (site.world_size == 1 && device_kind(site) != "cpu") {
    throw NotRun({"one rank with one GPU has nothing to compare; start it on several GPUs (--ranks N, srun, torchrun)",
                  "只有一个使用单个 GPU 的进程，没有可比较的对象；请在多个 GPU 上启动（--ranks N、srun、torchrun）"});
  }
}

Json run_job(const Site& site, const TrainingJob& job, const HowToRun& how) {
  if (how.crew != Crew::World && site.rank != 0) return Json::object();
  if (!std::filesystem::exists(site.prefix / "bin/sealift-train")) {
    const auto place = (site.prefix / "bin").string();
    throw NotRun({place + " has no sealift-train; carry it with [[program]]",
                  place + " 中没有 sealift-train；请用 [[program]] 携带"});
  }
  const auto out = site.work / job.name;
  std::filesystem::create_directories(out);
  const auto child =
      run_for(site, argv_of_job(site, job, how, out), variables_of_job(site, how), kLimit, how.kill_when);
  if (!child.good()) {
    // A verdict of "fail" is judged with the curve.
    const bool judged = child.code == 1 && std::filesystem::exists(out / "result.json");
    if (!judged) return {{"code", child.code}, {"failed", last_error(child.err)}};
  }
  if (site.rank != 0) return Json::object();
  const auto ranks = how.crew == Crew::One       ? 1
                     : how.crew == Crew::OfFirst ? how.local_ranks
                                                 : crew_size(site, how.local_ranks);
  return {
      {"ranks", ranks}, {"result", read_training_result(out / "result.json")}, {"norms", norms_of(out / "log.jsonl")}};
}

}  // namespace sealift::verify
