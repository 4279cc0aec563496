// SPDX-License-Identifier: Apache-2.0
// The golden run, recorded: a job in TOML, run here, and what it computed.
// Outside, below `sealift-verify golden`; see golden.hpp.
// What a site would refuse, or could not meet, is refused here, where it can still be changed.
#include "verify/training/by_rank.hpp"
#include "verify/training/golden.hpp"

#include "sealift/toml.hpp"

namespace sealift::verify {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

std::string text_of_node(const toml::node& node, const std::string& where) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  if (const auto* truth = node.as_boolean()) return truth->get() ? "true" : "false";
  if (const auto* number = node.as_floating_point()) return Json(number->get()).dump();
  throw std::invalid_argument(where + " is neither a text, a number, true nor false");
}

/// A table of the job, or false: it has no such key.
bool read_table_of_job(const std::string& key, const toml::table& table, const std::string& where, Golden& golden) {
  for (const auto& [name, value] : table) {
    const auto text = text_of_node(value, where);
    if (key == "settings") {
      golden.job.settings[std::string(name.str())] = text;
    } else if (key == "tolerances") {
      golden.tolerances[std::string(name.str())] = std::stod(text);
    } else {
      return false;
    }
  }
  return key == "settings" || key == "tolerances";
}

bool read_key_of_job(const std::string& key, const toml::node& value, const std::string& where, Golden& golden) {
  if (const auto* table = value.as_table()) return read_table_of_job(key, *table, where, golden);
  if (key == "name") {
    golden.name = text_of_node(value, where);
  } else if (key == "verb") {
    golden.job.verb = text_of_node(value, where);
  } else if (key == "method") {
    golden.method = text_of_node(value, where);
  } else if (key == "ranks" && value.is_integer()) {
    golden.ranks = value.as_integer()->get();
  } else {
    return false;
  }
  return true;
}

/// One rank has no method, several have one.
void require_method(const Golden& golden, const std::string& file) {
  if (golden.ranks < 1 || golden.ranks > kMostGoldenRanks) {
    throw std::invalid_argument(file + ": ranks is " + std::to_string(golden.ranks) + "; expected 1 to " +
                                std::to_string(kMostGoldenRanks));
  }
  const bool one = golden.ranks == 1;
  if (one ? golden.method == "none" : golden.method == "ddp" || golden.method == "fsdp") return;
  throw std::invalid_argument(file + ": method is " + golden.method + "; expected " +
                              (one ? "none, or ranks = 2" : "ddp or fsdp"));
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
    const std::string name(key.str()), where = file.string() + ": " + name;
    if (!read_key_of_job(name, value, where, golden)) {
      throw std::invalid_argument(where +
                                  " is unknown or not of its kind; expected name, verb, ranks (a number), method, "
                                  "[settings], [tolerances]");
    }
  }
  require_method(golden, file.string());
  if (golden.job.verb == "run") return golden;
  golden.rows = golden.ranks;
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

void need_result(const Json& ran) {
  if (ran.contains("failed")) throw std::runtime_error("the job failed: " + ran.at("failed").get<std::string>());
}

/// A site also runs the job as one process. What depends on the number of ranks (dropout) would fail there.
void require_one_process_agrees(const Site& site, const Golden& golden) {
  const auto ran = run_alone(site, golden);
  need_result(ran);
  Check check;
  const Series recorded{
      .name = {std::to_string(golden.ranks) + " ranks", ""}, .losses = golden.losses, .norms = golden.norms};
  judge_curves(series_of(ran, {"one process", ""}), recorded, tolerance_of(golden, golden.arch, golden.device), check);
  if (check.outcome == Outcome::Pass) return;
  throw std::invalid_argument("the job depends on its number of ranks, or its tolerance is too small: " +
                              check.reason.en);
}

}  // namespace

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
    if (is_path_setting(key) && !is_path_below(value)) {
      throw std::invalid_argument(file.string() + ": " + key + " is " + value +
                                  "; expected a path below --prefix, as it will be in the bundle");
    }
  }
  golden.by_rank = setting_by_rank(golden.job, site.prefix);
  if (golden.ranks > 1 && !golden.by_rank.empty()) {
    throw std::invalid_argument(file.string() + ": " + why_by_rank(golden.by_rank).en +
                                ", so that no other number of ranks could meet it; write " +
                                instead_of(golden.by_rank) + ", or leave ranks out");
  }
  golden.inputs = inputs_of(golden.job, site.prefix);
  golden.threads = 1;
  const auto ran = run_as_recorded(site, golden);
  need_result(ran);
  const auto series = series_of(ran, {});
  golden.losses = series.losses;
  golden.norms = series.norms;
  golden.weights = ran.at("weights");
  golden.device = ran.at("device");
  golden.arch = ran.at("arch");
  golden.torch = ran.at("result").at("torch_version");
  golden = golden_from(Json(to_json(golden)), file.string());  // what would be refused inside is refused now
  if (golden.ranks > 1) require_one_process_agrees(site, golden);
  return golden;
}

}  // namespace sealift::verify
