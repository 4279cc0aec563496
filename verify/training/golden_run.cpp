// SPDX-License-Identifier: Apache-2.0
// Settings, processes and final weights of a golden run's job.
// See golden_run.hpp.
// As recorded means on one host: there what is between the ranks is the same everywhere.
#include "verify/training/golden_run.hpp"

#include "verify/conduct/child_watch.hpp"
#include "verify/conduct/last_error.hpp"
#include "verify/conduct/processor_kind.hpp"

#include "sealift/train/checkpoint/digest.hpp"

#include <sys/utsname.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

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

/// SHA-256 of the parameters as the job saved them.
std::string weights_of(const Site& site, const TrainingJob& job, const Json& result) {
  auto folder = site.work / job.name;
  if (job.verb == "run") {
    const auto file = folder / "model.safetensors";
    const auto done = run_for(
        site, {(site.prefix / "bin/sealift-train").string(), "export", (folder / "saved").string(), file.string()},
        without_launcher(), std::chrono::minutes(30));
    if (!done.good()) throw std::runtime_error("the final weights cannot be exported: " + last_error(done.err));
    return digest_of_files({file});
  }
  folder /= result.at("tuner_type") == "none" ? "model" : "adapter";
  auto files = files_at_place(folder);
  std::erase_if(files, [](const fs::path& file) { return file.extension() != ".safetensors"; });
  if (files.empty()) throw std::runtime_error(folder.string() + " has no weights");
  return digest_of_files(files);
}

/// What a job computed, with where it ran.
Json with_place(Json ran) {
  if (!ran.contains("result")) return ran;
  ran["device"] = device_name(ran.at("result"));
  ran["arch"] = arch_here();
  return ran;
}

/// GPUs that a process of this host sees.
std::int64_t visible_gpus() {
  std::int64_t devices = 0;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator("/dev", none)) {
    const auto name = entry.path().filename().string();
    if (name.size() > 6 && name.starts_with("nvidia") && name.find_first_not_of("0123456789", 6) == name.npos) {
      ++devices;
    }
  }
  const char* chosen = std::getenv("CUDA_VISIBLE_DEVICES");
  if (!chosen || !*chosen) return devices;
  const std::string list(chosen);
  return std::min<std::int64_t>(devices, 1 + std::count(list.begin(), list.end(), ','));
}

}  // namespace

std::string digest_of_files(const std::vector<fs::path>& files) {
  train::Sha256 digest;
  for (const auto& file : files) hash_file_into(digest, file);
  return digest.hex();
}

std::vector<fs::path> files_at_place(const fs::path& place) {
  if (!fs::is_directory(place)) return {place};
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(place)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::optional<TrainingJob> job_on_ranks(const Golden& golden, const fs::path& prefix, const std::string& name,
                                        std::int64_t ranks) {
  auto job = golden.job;
  job.name = name;
  for (auto& [key, value] : job.settings) {
    if (is_path_setting(key)) value = (prefix / value).string();
  }
  if (job.verb != "run") job.settings["save_strategy"] = "no";
  if (ranks == golden.ranks) return job;
  if (job.verb == "run") {  // all ranks share its whole batch, which is 32 where the job does not say it
    const auto number = [&](const char* key, std::int64_t otherwise) {
      const auto found = job.settings.find(key);
      return found == job.settings.end() ? otherwise : std::int64_t{std::stoll(found->second)};
    };
    const auto parts = ranks * std::max<std::int64_t>(1, number("micro_batches", 1));
    return number("global_batch", 32) % parts == 0 ? std::optional(job) : std::nullopt;
  }
  if (golden.rows % ranks != 0) return std::nullopt;
  const auto of_rank = golden.rows / ranks;
  auto at_once = std::max<std::int64_t>(1, std::stoll(job.settings.at("per_device_train_batch_size")));
  while (of_rank % at_once != 0) --at_once;
  job.settings["per_device_train_batch_size"] = std::to_string(at_once);
  job.settings["gradient_accumulation_steps"] = std::to_string(of_rank / at_once);
  return job;
}

Json run_as_recorded(const Site& site, const Golden& golden) {
  auto job =
      job_on_ranks(golden, site.prefix, golden.ranks == 1 ? "golden_alone" : "golden_ranks", golden.ranks).value();
  job.settings["threads"] = std::to_string(golden.threads);
  if (golden.ranks > 1) job.settings["parallel_method"] = golden.method;
  if (job.verb == "run") job.settings["checkpoint_folder"] = (site.work / job.name / "saved").string();
  auto ran = run_job(site, job, {.crew = golden.ranks == 1 ? Crew::One : Crew::OfFirst, .local_ranks = golden.ranks});
  if (!ran.contains("result")) return ran;
  ran["weights"] = weights_of(site, job, ran.at("result"));
  return with_place(std::move(ran));
}

Json run_alone(const Site& site, const Golden& golden) {
  auto job = job_on_ranks(golden, site.prefix, "golden_alone", 1).value();
  job.settings["threads"] = std::to_string(golden.threads);
  // Without a method there are no units that another precision could be of.
  if (job.verb == "run" && precision_of(job) != "fp32") job.settings["parallel_method"] = "ddp";
  return with_place(run_job(site, job, {.crew = Crew::One}));
}

bool has_devices_for(const Site& site, const Golden& golden) {
  return golden.ranks == 1 || device_kind(site) == "cpu" || visible_gpus() >= golden.ranks;
}

std::string arch_here() {
  utsname name{};
  uname(&name);
  return name.machine;
}

std::string device_name(const Json& result) {
  const auto& device = result.at("device");
  return device.contains("name") ? device.at("name").get<std::string>()
                                 : processor_kind(device.value("vector_units", ""));
}

}  // namespace sealift::verify
