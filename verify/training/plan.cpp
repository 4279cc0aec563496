// SPDX-License-Identifier: Apache-2.0
// What the verification job is here.
// See plan.hpp.
// A misspelt expectation is refused: it must not be silently none.
#include "verify/training/plan.hpp"

#include "verify/training/curves.hpp"

#include <numeric>

namespace sealift::verify {
namespace {

std::string text_of_setting(const nlohmann::json& value, const std::string& key) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number() || value.is_boolean()) return value.dump();
  throw std::invalid_argument("site.toml: [training] " + key + " is neither a text, a number, true nor false");
}

}  // namespace

TrainingExpectation training_expectation(const Site& site) {
  TrainingExpectation expected;
  const auto table = site.expected.find("training");
  if (table == site.expected.end()) return expected;
  if (!table->is_object()) throw std::invalid_argument("site.toml: training is no table; write [training]");
  for (const auto& [key, value] : table->items()) {
    if (key == "precision") {
      expected.precision = text_of_setting(value, key);
    } else if (key == "tolerance" && value.is_number() && value.get<double>() >= 0 && value.get<double>() <= 1) {
      expected.tolerance = value.get<double>();
    } else if (key == "method") {
      expected.method = text_of_setting(value, key);
    } else if (key == "shared_folder") {
      expected.shared_folder = text_of_setting(value, key);
    } else if (key == "settings" && value.is_object()) {
      for (const auto& [name, setting] : value.items())
        expected.settings[name] = text_of_setting(setting, "settings." + name);
    } else {
      throw std::invalid_argument("site.toml: [training] " + key +
                                  " is unknown or not of its kind; expected precision, "
                                  "tolerance (a number from 0 to 1), method, shared_folder, settings (a table)");
    }
  }
  return expected;
}

double tolerance_of(const TrainingExpectation& expected) {
  return expected.tolerance.value_or(default_tolerance(expected.precision));
}

std::int64_t steps_of(const Site& site) {
  return site.level == Level::Quick ? 12 : 100;
}

TrainingJob plain_job(const Site& site, const std::string& name, const std::string& method) {
  const auto expected = training_expectation(site);
  // Two micro-batches on each rank, or on each of four local ones.
  const std::int64_t parts = 2 * (site.world_size == 1 ? 4 : site.world_size);
  const auto batch = (32 + parts - 1) / parts * parts;
  TrainingJob job{.name = name,
                  .settings = {{"steps", std::to_string(steps_of(site))},
                               {"global_batch", std::to_string(batch)},
                               {"precision", expected.precision},
                               {"seed", std::to_string(site.seed)},
                               {"timeout_seconds", "300"}}};
  const bool none = method == "none";
  job.settings["parallel_method"] = none && expected.precision != "fp32" ? "ddp" : method;
  // What other programs of the host do to threads that wait for each other is no part of the question.
  if (device_kind(site) == "cpu") job.settings["threads"] = "1";
  // One process takes the ranks' parts one after another: what is left is the order in which their sums are added.
  if (none) job.settings["micro_batches"] = std::to_string(crew_size(site, 2));
  return job;
}

std::int64_t shard_size_of(const Site& site, std::int64_t ranks) {
  const auto local = site.local_world_size;
  if (local > 1 && local < ranks && ranks % local == 0) return local;
  for (std::int64_t size = 2; size < ranks; ++size) {
    if (ranks % size == 0) return size;
  }
  const auto count = std::to_string(ranks);
  throw NotRun({"hsdp needs a world that divides into copies of several ranks; " + count + " ranks do not",
                "hsdp 需要能划分为多组的进程数；" + count + " 个进程无法划分"});
}

std::filesystem::path folder_of_all(const Site& site, const std::string& name) {
  const auto expected = training_expectation(site);
  if (expected.shared_folder) return std::filesystem::path(*expected.shared_folder) / ("sealift-verify-" + name);
  if (site.local_world_size == site.world_size) return site.shared / ("work-" + name);
  throw NotRun(
      {"ranks of several hosts save checkpoints in a folder that all of them see; name one in site.toml: "
       "[training] shared_folder",
       "多台主机的进程需要一个共同可见的检查点目录；请在 site.toml 中设置 [training] shared_folder"});
}

}  // namespace sealift::verify
