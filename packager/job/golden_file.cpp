// SPDX-License-Identifier: Apache-2.0
// [[golden]] and the recorded result that it names; see golden_file.hpp.
// A result that a site would refuse is refused here, where it can still be recorded again.
#include "packager/job/golden_file.hpp"

#include <cmath>
#include <set>

#include "bundle/core/json.hpp"
#include "sealift/bundle/core/file.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

constexpr std::size_t kMaxSteps = 1'000'000, kMaxInputs = 100'000, kMaxSettings = 1'000;
constexpr std::uint64_t kMaxBytes = 64 << 20, kMaxRanks = 64;

[[noreturn]] void refuse(const fs::path& file, const std::string& what, const std::string& expected,
                         const std::string& got = {}) {
  throw Error(ErrorCode::Usage, {.what = what,
                                 .where = file.string(),
                                 .expected = expected,
                                 .got = got.substr(0, 200),
                                 .next = "record it again with: sealift-verify golden"});
}

// Numbers are texts of 17 digits, so that every reader has the same bits.
void require_number(const fs::path& file, const std::string& key, const bundle::Json& value) {
  const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (!value.is_string() || text.empty() || *end != '\0' || !std::isfinite(number))
    refuse(file, key + " has a value that is not finite", "a number as text, like \"2.5\"", text);
}

void require_steps(const fs::path& file, bundle::JsonObject& golden) {
  const std::uint64_t steps = golden.integer("steps", kMaxSteps);
  for (const char* key : {"losses", "norms"}) {
    const bundle::Json& values = golden.array(key, kMaxSteps);
    if (steps == 0 || values.size() != steps)
      refuse(file, std::string("there is not one of ") + key + " for each step", std::to_string(steps),
             std::to_string(values.size()));
    for (const bundle::Json& value : values) require_number(file, key, value);
  }
}

// Of several ranks both keys are there, of one neither.
void require_ranks(const fs::path& file, bundle::JsonObject& golden, std::uint64_t rows) {
  if (!golden.has("ranks") && !golden.has("method")) return;
  const std::uint64_t ranks = golden.integer("ranks", kMaxRanks);
  if (ranks < 2) refuse(file, "ranks is there for several", "2 to 64", std::to_string(ranks));
  if (const std::string method = golden.string("method"); method != "ddp" && method != "fsdp")
    refuse(file, "the ranks trained by another method", "ddp or fsdp", method);
  if (rows % ranks != 0)
    refuse(file, "the ranks do not divide the rows of a step", std::to_string(ranks), std::to_string(rows));
}

std::map<std::string, bundle::Digest> read_inputs(const fs::path& file, const bundle::Json& inputs) {
  if (!inputs.is_object() || inputs.size() > kMaxInputs)
    refuse(file, "inputs is no object of digests", "{\"PATH\": …}");
  std::map<std::string, bundle::Digest> result;
  for (const auto& [path, digest] : inputs.items()) {
    bundle::SafePath::parse(path, file.string());
    const auto parsed = digest.is_string() ? bundle::Digest::from_hex(digest.get<std::string>()) : std::nullopt;
    if (!parsed) refuse(file, "inputs has something else than a SHA-256", "64 hexadecimal digits", digest.dump());
    result.emplace(path, *parsed);
  }
  return result;
}

void require_texts(const fs::path& file, const std::string& key, const bundle::Json& object) {
  if (!object.is_object() || object.size() > kMaxSettings) refuse(file, key + " is no object of texts", "{}");
  for (const auto& [name, value] : object.items()) {
    if (!value.is_string()) refuse(file, key + " has a value that is no text", "a text", value.dump());
    if (key == "tolerances") require_number(file, key, value);
  }
}

GoldenJob read_golden_job(TomlTable& table, const fs::path& folder) {
  const auto path_of = [&](const std::string& key) {
    const std::string text = table.string_or(key, "");
    return text.empty() ? fs::path() : fs::absolute(folder / text).lexically_normal();
  };
  GoldenJob job{.file = path_of("job"),
                .program = path_of("program"),
                .libraries = path_of("libraries"),
                .device = table.string_or("device", "cpu")};
  if (!fs::is_regular_file(job.file))
    table.refuse("job", "the job of a golden run is not there", "a TOML file with name, verb and [settings]",
                 job.file.string());
  if (job.device != "cpu" && job.device != "cuda")
    table.refuse("device", "a golden run is run on another device", "cpu or cuda", job.device);
  return job;
}

}  // namespace

std::map<std::string, bundle::Digest> read_golden_result(const fs::path& file, const std::string& name) {
  const std::string text = bundle::read_text(file, kMaxBytes);
  const bundle::Json json = bundle::parse_json(text, file.string());
  bundle::JsonObject golden(json, file.string());
  if (golden.string("format") != "sealift.golden" || golden.integer("version") != 1)
    refuse(file, "this is no golden run of a known format", "sealift.golden, version 1");
  if (const std::string recorded = golden.string("name"); recorded != name)
    refuse(file, "the golden run has another name than its table", name, recorded);
  static const std::set<std::string> verbs{"run", "sft", "dpo", "kto", "reward", "pretrain"};
  if (const std::string verb = golden.string("verb"); !verbs.contains(verb))
    refuse(file, "sealift-train has no such verb", "run, sft, dpo, kto, reward or pretrain", verb);
  require_texts(file, "settings", golden.at("settings"));
  require_texts(file, "tolerances", golden.at("tolerances"));
  require_ranks(file, golden, golden.integer("rows", 1'000'000));
  golden.integer("threads", 4096);
  require_steps(file, golden);
  golden.digest("weights");
  for (const char* key : {"device", "arch", "torch"}) golden.string(key);
  auto inputs = read_inputs(file, golden.at("inputs"));
  golden.done();
  return inputs;
}

std::vector<JobGolden> read_job_goldens(TomlTable& job, const fs::path& folder) {
  std::vector<JobGolden> goldens;
  std::set<std::string> names;
  for (TomlTable& table : job.tables("golden")) {
    JobGolden golden{.name = table.plain_name("name"), .file = {}, .inputs = {}};
    if (table.has("job"))
      golden.job = read_golden_job(table, folder);
    else
      golden.file = fs::absolute(folder / table.string("result")).lexically_normal();
    if (golden.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") != std::string::npos)
      table.refuse("name", "a golden run is named by a-z, 0-9 and _", "like qwen_lora", golden.name);
    if (!names.insert(golden.name).second)
      table.refuse("name", "two golden runs have the same name", "a name of its own", golden.name);
    if (!golden.job && !fs::is_regular_file(golden.file))
      table.refuse("result", "the recorded result is not there", "a file that `sealift-verify golden` wrote",
                   golden.file.string(),
                   "sealift-verify golden JOB.toml --out FILE, or job = \"JOB.toml\" for `lock` to run it");
    if (!golden.job) golden.inputs = read_golden_result(golden.file, golden.name);
    table.done();
    goldens.push_back(std::move(golden));
  }
  return goldens;
}

void require_inputs_of_goldens(const std::vector<JobGolden>& goldens, const Lock& lock) {
  std::map<std::string, bundle::Digest> carried;
  for (const LockedModel& model : lock.models)
    for (const LockedFile& file : model.files) carried.emplace(model.spec.into + "/" + file.path, file.sha256);
  for (const LockedProgram& program : lock.programs) carried.emplace(program.into, program.sha256);
  for (const JobGolden& golden : goldens) {
    std::string faults;
    for (const auto& [path, digest] : golden.inputs) {
      const auto found = carried.find(path);
      if (found == carried.end())
        faults += (faults.empty() ? "" : ", ") + path + " (not carried)";
      else if (found->second != digest)
        faults += (faults.empty() ? "" : ", ") + path + " (other bytes)";
    }
    if (!faults.empty())
      throw Error(ErrorCode::Usage, {.what = "a golden run read other files than the bundle carries",
                                     .where = golden.file.string(),
                                     .expected = "every file that it read, byte for byte",
                                     .got = faults.substr(0, 2000),
                                     .next = "carry them with [[model]], [[data]] or [[program]], or record it again"});
  }
}

}  // namespace sealift::packager
