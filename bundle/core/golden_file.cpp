// SPDX-License-Identifier: Apache-2.0
// Reads a golden run key by key; see golden_file.hpp. The packer signed it, yet every value is bounded: a
// mistake there must not look like a site's fault.
#include "bundle/core/golden_file.hpp"

#include <cmath>
#include <cstdlib>
#include <optional>
#include <set>

#include "bundle/core/json.hpp"
#include "bundle/core/json_object.hpp"
#include "bundle/core/text_parts.hpp"
#include "sealift/bundle/core/safe_path.hpp"

namespace sealift::bundle {
namespace {

constexpr std::size_t kMaxSteps = 1'000'000, kMaxInputs = 100'000, kMaxSettings = 1'000;
constexpr std::size_t kMaxValues = 2 * kMaxSteps + kMaxInputs + 10'000;

[[noreturn]] void refuse(const std::string& where, const std::string& what, const std::string& expected,
                         const std::string& got = {}) {
  throw Error(ErrorCode::Usage, {.what = what,
                                 .where = where,
                                 .expected = expected,
                                 .got = SafePath::printable(got),
                                 .next = "record it again with: sealift-verify golden"});
}

bool is_word(std::string_view text) {
  return !text.empty() && text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == text.npos;
}

// What the checks set themselves, or what would leave the prefix or the machine.
bool is_foreign_setting(std::string_view name) {
  static const std::set<std::string_view> kForeign = {"out",
                                                      "output_dir",
                                                      "device",
                                                      "ranks",
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
                                                      "dry_run",
                                                      "resume_from_checkpoint",
                                                      "report_to",
                                                      "checkpoint_folder",
                                                      "checkpoint_every"};
  return kForeign.contains(name);
}

double number_of(const std::string& where, const std::string& key, const Json& value) {
  const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (!value.is_string() || text.empty() || *end != '\0' || !std::isfinite(number))
    refuse(where, key + " has a value that is not finite", "a number as text, like \"2.5\"", text);
  return number;
}

std::vector<double> numbers_of(JsonObject& golden, const std::string& key, std::uint64_t steps) {
  const Json& values = golden.array(key, kMaxSteps);
  if (steps == 0 || values.size() != steps)
    refuse(golden.where(), "there is not one of " + key + " for each step", std::to_string(steps),
           std::to_string(values.size()));
  std::vector<double> numbers;
  for (const Json& value : values) numbers.push_back(number_of(golden.where(), key, value));
  return numbers;
}

const Json& object_of(JsonObject& golden, const std::string& key, std::size_t most) {
  const Json& object = golden.at(key);
  if (!object.is_object() || object.size() > most)
    refuse(golden.where(), key + " is no object of texts", "{\"NAME\": \"TEXT\"}");
  for (const auto& [name, value] : object.items())
    if (!value.is_string()) refuse(golden.where(), key + " has a value other than text", "a text", value.dump());
  return object;
}

void read_settings(JsonObject& golden, GoldenFile& file) {
  for (const auto& [name, value] : object_of(golden, "settings", kMaxSettings).items()) {
    if (!is_word(name) || is_foreign_setting(name))
      refuse(golden.where(), "a setting is not for a golden run", "one that leaves place and ranks alone", name);
    std::string text = value.get<std::string>();
    if (is_path_setting(name) && !is_path_below(text))
      refuse(golden.where(), "settings." + name + " leaves the prefix", "a path below the prefix", text);
    file.settings.emplace(name, std::move(text));
  }
}

// Of several ranks both keys are there, of one neither, as programs wrote it that knew one only.
void read_ranks(JsonObject& golden, GoldenFile& file) {
  if (!golden.has("ranks") && !golden.has("method")) return;
  file.ranks = golden.integer("ranks", kMaxGoldenRanks);
  if (file.ranks < 2) refuse(golden.where(), "ranks is there for several", "2 to 64", std::to_string(file.ranks));
  file.method = golden.string("method");
  if (file.method != "ddp" && file.method != "fsdp")
    refuse(golden.where(), "the ranks trained by another method", "ddp or fsdp", file.method);
  if (file.rows % file.ranks != 0)
    refuse(golden.where(), "the ranks do not divide the rows of a step", std::to_string(file.ranks),
           std::to_string(file.rows));
}

// Of one process alone: what would have several compute something else.
void read_by_rank(JsonObject& golden, GoldenFile& file) {
  if (!golden.has("by_rank")) return;
  file.by_rank = golden.string("by_rank");
  if (!is_word(file.by_rank)) refuse(golden.where(), "by_rank names no setting", "like lora_dropout", file.by_rank);
  if (file.ranks > 1)
    refuse(golden.where(), "several ranks recorded what depends on their number", "ranks 1",
           std::to_string(file.ranks));
}

void read_inputs(JsonObject& golden, GoldenFile& file) {
  for (const auto& [path, value] : object_of(golden, "inputs", kMaxInputs).items()) {
    SafePath::parse(path, golden.where());
    if (!is_path_below(path)) refuse(golden.where(), "inputs has an invalid path", "a path below the prefix", path);
    const std::optional<Digest> digest = Digest::from_hex(value.get<std::string>());
    if (!digest)
      refuse(golden.where(), "inputs has something else than a SHA-256", "64 hexadecimal digits", value.dump());
    file.inputs.emplace(path, *digest);
  }
}

void read_tolerances(JsonObject& golden, GoldenFile& file) {
  for (const auto& [key, value] : object_of(golden, "tolerances", kMaxSettings).items()) {
    const double tolerance = number_of(golden.where(), "tolerances", value);
    if (tolerance < 0 || tolerance > 1)
      refuse(golden.where(), "a tolerance is no share", "0 to 1", value.get<std::string>());
    file.tolerances.emplace(key, tolerance);
  }
}

}  // namespace

bool is_path_setting(std::string_view name) {
  static const std::set<std::string_view> kPaths = {"model",    "dataset",   "val_dataset",
                                                    "adapters", "ref_model", "ref_adapters"};
  return kPaths.contains(name);
}

bool is_path_below(std::string_view path) {
  if (path.empty() || path.size() > 1024) return false;
  for (const char c : path)
    if (static_cast<unsigned char>(c) < 0x20 || c == '\\' || c == ',' || c == 0x7f) return false;
  const std::vector<std::string_view> parts = split(path, '/');
  for (const std::string_view part : parts)
    if (part.empty() || part == "." || part == "..") return false;
  return true;
}

GoldenFile parse_golden(std::string_view text, const std::string& where) {
  const Json json = parse_json(text, where, kMaxValues);
  JsonObject golden(json, where);
  if (golden.string("format") != "sealift.golden" || golden.integer("version") != 1)
    refuse(where, "this is no golden run of a known format", "sealift.golden, version 1");
  GoldenFile file{.name = golden.string("name"), .verb = golden.string("verb")};
  if (!is_word(file.name)) refuse(where, "a golden run is named by a-z, 0-9 and _", "like qwen_lora", file.name);
  static const std::set<std::string> kVerbs{"run", "sft", "dpo", "kto", "reward", "pretrain"};
  if (!kVerbs.contains(file.verb))
    refuse(where, "sealift-train has no such verb", "run, sft, dpo, kto, reward or pretrain", file.verb);
  read_settings(golden, file);
  file.rows = golden.integer("rows", 1'000'000);
  if (file.verb != "run" && file.rows == 0) refuse(where, "rows is 0", "at least one row a step, as fine-tuning has");
  read_ranks(golden, file);
  read_by_rank(golden, file);
  read_inputs(golden, file);
  const std::uint64_t steps = golden.integer("steps", kMaxSteps);
  file.losses = numbers_of(golden, "losses", steps);
  file.norms = numbers_of(golden, "norms", steps);
  file.weights = golden.digest("weights");
  file.device = golden.string("device");
  file.arch = golden.string("arch");
  file.torch = golden.string("torch");
  file.threads = golden.integer("threads", 4096);
  if (file.threads == 0) refuse(where, "threads is 0", "1 to 4096");
  read_tolerances(golden, file);
  golden.done();
  return file;
}

}  // namespace sealift::bundle
