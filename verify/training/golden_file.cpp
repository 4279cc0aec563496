// SPDX-License-Identifier: Apache-2.0
// The golden run's file: reader and writer.
// See golden_file.hpp; docs/verify_checks_training.md describes the format.
// Whoever made the bundle signed it, yet every value is bounded: a mistake there must not look like this site's fault.
#include "verify/training/golden_file.hpp"

#include <cmath>
#include <fstream>
#include <limits>
#include <set>

namespace sealift::verify {
namespace {

using Json = nlohmann::json;

constexpr std::uintmax_t kMaxBytes = 64 << 20;
constexpr std::int64_t kMaxSteps = 1'000'000;

[[noreturn]] void refuse_golden(const std::string& where, const std::string& what) {
  throw std::invalid_argument(where + " is no golden run: " + what + "; make it again with: sealift-verify golden");
}

/// An object's members, each asked for once; others are refused.
class GoldenMembers {
 public:
  GoldenMembers(const Json& json, std::string where) : json_(json), where_(std::move(where)) {
    if (!json_.is_object()) refuse_golden(where_, "it is not an object");
  }
  const Json& at(const std::string& key) {
    asked_.insert(key);
    const auto found = json_.find(key);
    if (found == json_.end()) refuse_golden(where_, "it has no key \"" + key + "\"");
    return *found;
  }
  bool has(const std::string& key) const { return json_.contains(key); }
  std::string text(const std::string& key) {
    const auto& value = at(key);
    if (!value.is_string() || value.get_ref<const std::string&>().size() > 4096) {
      refuse_golden(where_, key + " is not a text of at most 4096 bytes");
    }
    return value;
  }
  std::int64_t number(const std::string& key, std::int64_t least, std::int64_t most) {
    const auto& value = at(key);
    if (!value.is_number_integer() || value.get<double>() < static_cast<double>(least) ||
        value.get<double>() > static_cast<double>(most)) {
      refuse_golden(where_,
                    key + " is not a whole number from " + std::to_string(least) + " to " + std::to_string(most));
    }
    return value;
  }
  std::map<std::string, std::string> texts(const std::string& key) {
    const auto& value = at(key);
    if (!value.is_object() || value.size() > 100'000) refuse_golden(where_, key + " is not an object of texts");
    std::map<std::string, std::string> result;
    for (const auto& [name, text] : value.items()) {
      if (!text.is_string()) refuse_golden(where_, key + "." + name + " is not a text");
      result[name] = text;
    }
    return result;
  }
  void done() const {
    for (const auto& [key, value] : json_.items()) {
      if (!asked_.contains(key)) refuse_golden(where_, "nobody reads its key \"" + key + "\"");
    }
  }

 private:
  const Json& json_;
  std::string where_;
  std::set<std::string> asked_;
};

double number_of(const std::string& text, const std::string& where) {
  std::size_t used = 0;
  double value = std::numeric_limits<double>::quiet_NaN();
  try {
    value = std::stod(text, &used);
  } catch (const std::exception&) {
    used = text.size() + 1;
  }
  if (used != text.size() || text.empty() || !std::isfinite(value))
    refuse_golden(where, "\"" + text + "\" is no finite number");
  return value;
}

std::vector<double> numbers_of(const Json& array, const std::string& where) {
  if (!array.is_array() || array.empty() || array.size() > kMaxSteps) {
    refuse_golden(where, "losses and norms are lists of 1 to 1000000 numbers");
  }
  std::vector<double> values;
  for (const auto& value : array) {
    if (!value.is_string()) refuse_golden(where, "a loss or norm is not a text with a number");
    values.push_back(number_of(value, where));
  }
  return values;
}

std::vector<std::string> texts_of_numbers(const std::vector<double>& values) {
  std::vector<std::string> texts;
  for (const double value : values) {
    char text[40];
    std::snprintf(text, sizeof text, "%.17g", value);
    texts.emplace_back(text);
  }
  return texts;
}

bool is_sha256(const std::string& text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

bool is_setting_name(const std::string& name) {
  return !name.empty() && name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos;
}

/// What the checks set themselves, or what would leave the prefix or the machine.
bool is_foreign_setting(const std::string& name) {
  static const std::set<std::string> foreign{"out",
                                             "output_dir",
                                             "device",
                                             "ranks",
                                             "checkpoint_folder",
                                             "checkpoint_every",
                                             "trace",
                                             "tensorboard",
                                             "config",
                                             "preset",
                                             "resume",
                                             "json",
                                             "parallel_method",
                                             "sharding_strategy",
                                             "shard_size",
                                             "threads",
                                             "resume_from_checkpoint",
                                             "dry_run",
                                             "report_to"};
  return foreign.contains(name);
}

/// `ranks` and `method`: both of several ranks, neither of one, as programs wrote it that knew one only.
void read_golden_ranks(GoldenMembers& members, const std::string& where, Golden& golden) {
  if (!members.has("ranks") && !members.has("method")) return;
  golden.ranks = members.number("ranks", 2, kMostGoldenRanks);
  golden.method = members.text("method");
  if (golden.method != "ddp" && golden.method != "fsdp") refuse_golden(where, "method is not ddp or fsdp");
  if (golden.rows % golden.ranks != 0) refuse_golden(where, "its ranks do not divide its rows");
}

}  // namespace

bool is_path_setting(const std::string& name) {
  static const std::set<std::string> paths{"model", "dataset", "val_dataset", "adapters", "ref_model", "ref_adapters"};
  return paths.contains(name);
}

bool is_safe_path(const std::string& path) {
  if (path.empty() || path.size() > 1024 || path.front() == '/' || path.back() == '/') return false;
  for (const char c : path) {
    if (static_cast<unsigned char>(c) < 0x20 || c == '\\' || c == ',' || c == 0x7f) return false;
  }
  for (const auto& part : std::filesystem::path(path)) {
    if (part == ".." || part == "." || part.empty()) return false;
  }
  return true;
}

std::string precision_of(const TrainingJob& job) {
  const auto found = job.settings.find("precision");
  if (found != job.settings.end()) return found->second;
  return "fp32";
}

double tolerance_of(const Golden& golden, const std::string& arch, const std::string& device) {
  const auto precision = precision_of(golden.job);
  double tolerance = default_tolerance(precision);
  for (const auto& key : {precision, precision + "@" + arch, precision + "@" + device}) {
    if (const auto found = golden.tolerances.find(key); found != golden.tolerances.end()) tolerance = found->second;
  }
  return tolerance;
}

Golden golden_from(const Json& json, const std::string& where) {
  GoldenMembers members(json, where);
  if (members.text("format") != "sealift.golden" || members.number("version", 1, 1) != 1) {
    refuse_golden(where, "format and version are not sealift.golden and 1");
  }
  Golden golden{.name = members.text("name")};
  if (!is_setting_name(golden.name)) refuse_golden(where, "name is not of a-z, 0-9 and _");
  golden.job = {.name = golden.name, .verb = members.text("verb"), .settings = members.texts("settings")};
  static const std::set<std::string> verbs{"run", "sft", "dpo", "kto", "reward", "pretrain"};
  if (!verbs.contains(golden.job.verb)) refuse_golden(where, "verb is not run, sft, dpo, kto, reward or pretrain");
  for (const auto& [name, value] : golden.job.settings) {
    if (!is_setting_name(name) || is_foreign_setting(name))
      refuse_golden(where, "settings." + name + " is not for a golden run");
    if (is_path_setting(name) && !is_safe_path(value)) {
      refuse_golden(where, "settings." + name + " is \"" + value + "\"; expected a path below the prefix");
    }
  }
  golden.rows = members.number("rows", 0, 1'000'000);
  if (golden.job.verb != "run" && golden.rows == 0)
    refuse_golden(where, "rows is 0; fine-tuning has at least one row a step");
  read_golden_ranks(members, where, golden);
  golden.inputs = members.texts("inputs");
  for (const auto& [path, digest] : golden.inputs) {
    if (!is_safe_path(path) || !is_sha256(digest))
      refuse_golden(where, "inputs." + path + " is not a path and its SHA-256");
  }
  golden.losses = numbers_of(members.at("losses"), where);
  golden.norms = numbers_of(members.at("norms"), where);
  const auto steps = members.number("steps", 1, kMaxSteps);
  if (static_cast<std::int64_t>(golden.losses.size()) != steps || golden.norms.size() != golden.losses.size()) {
    refuse_golden(where, std::to_string(steps) + " steps have " + std::to_string(golden.losses.size()) +
                             " losses and " + std::to_string(golden.norms.size()) + " norms");
  }
  golden.weights = members.text("weights");
  if (!is_sha256(golden.weights)) refuse_golden(where, "weights is not a SHA-256");
  golden.device = members.text("device");
  golden.arch = members.text("arch");
  golden.torch = members.text("torch");
  golden.threads = members.number("threads", 1, 4096);
  for (const auto& [key, text] : members.texts("tolerances")) {
    golden.tolerances[key] = number_of(text, where);
    if (golden.tolerances[key] < 0 || golden.tolerances[key] > 1)
      refuse_golden(where, "tolerances." + key + " is not in 0 to 1");
  }
  members.done();
  return golden;
}

Golden read_golden(const std::filesystem::path& file) {
  std::error_code error;
  const auto size = std::filesystem::file_size(file, error);
  if (error) throw std::invalid_argument("cannot read " + file.string() + ": " + error.message());
  if (size > kMaxBytes) refuse_golden(file.string(), "it has more than 64 MiB");
  std::ifstream in(file, std::ios::binary);
  const auto json = Json::parse(in, nullptr, false);
  if (json.is_discarded()) refuse_golden(file.string(), "it is not JSON");
  return golden_from(json, file.string());
}

nlohmann::ordered_json to_json(const Golden& golden) {
  std::map<std::string, std::string> tolerances;
  for (const auto& [key, value] : golden.tolerances) tolerances[key] = texts_of_numbers({value}).front();
  nlohmann::ordered_json json{{"format", "sealift.golden"},
                              {"version", 1},
                              {"name", golden.name},
                              {"verb", golden.job.verb},
                              {"settings", golden.job.settings},
                              {"rows", golden.rows},
                              {"steps", golden.losses.size()},
                              {"inputs", golden.inputs},
                              {"losses", texts_of_numbers(golden.losses)},
                              {"norms", texts_of_numbers(golden.norms)},
                              {"weights", golden.weights},
                              {"device", golden.device},
                              {"arch", golden.arch},
                              {"torch", golden.torch},
                              {"threads", golden.threads},
                              {"tolerances", tolerances}};
  if (golden.ranks > 1) json.update({{"ranks", golden.ranks}, {"method", golden.method}});
  return json;
}

}  // namespace sealift::verify
