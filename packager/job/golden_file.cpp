// SPDX-License-Identifier: Apache-2.0
// [[golden]] and the recorded result that it names; see golden_file.hpp.
// A result that a site would refuse is refused here, where it can still be recorded again.
#include "packager/job/golden_file.hpp"

#include <set>

#include "bundle/core/golden_file.hpp"
#include "sealift/bundle/core/file.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

[[noreturn]] void refuse(const fs::path& file, const std::string& what, const std::string& expected,
                         const std::string& got) {
  throw Error(ErrorCode::Usage, {.what = what,
                                 .where = file.string(),
                                 .expected = expected,
                                 .got = got.substr(0, 200),
                                 .next = "record it again with: sealift-verify golden"});
}

GoldenJob read_golden_job(TomlTable& table, const fs::path& folder) {
  const auto path_of = [&](const std::string& key) {
    const std::string text = table.string_or(key, "");
    return text.empty() ? fs::path() : fs::absolute(folder / text).lexically_normal();
  };
  GoldenJob job;
  table.attempt([&] {
    job.file = path_of("job");
    if (!fs::is_regular_file(job.file))
      table.refuse("job", "the job of a golden run is not there", "a TOML file with name, verb and [settings]",
                   job.file.string());
  });
  table.attempt([&] { job.program = path_of("program"); });
  table.attempt([&] { job.libraries = path_of("libraries"); });
  table.attempt([&] {
    job.device = table.string_or("device", "cpu");
    if (job.device != "cpu" && job.device != "cuda")
      table.refuse("device", "a golden run is run on another device", "cpu or cuda", job.device);
  });
  return job;
}

}  // namespace

std::map<std::string, bundle::Digest> read_golden_result(const fs::path& file, const std::string& name) {
  bundle::GoldenFile golden = bundle::parse_golden(bundle::read_text(file, bundle::kMaxGoldenBytes), file.string());
  if (golden.name != name) refuse(file, "the golden run has another name than its table", name, golden.name);
  return std::move(golden.inputs);
}

std::vector<JobGolden> read_job_goldens(TomlTable& job, const fs::path& folder) {
  std::vector<JobGolden> goldens;
  std::set<std::string> names;
  job.each("golden", [&](TomlTable& table) {
    JobGolden golden;
    table.attempt([&] {
      golden.name = table.plain_name("name");
      if (golden.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") != std::string::npos)
        table.refuse("name", "a golden run is named by a-z, 0-9 and _", "like qwen_lora", golden.name);
      if (!names.insert(golden.name).second)
        table.refuse("name", "two golden runs have the same name", "a name of its own", golden.name);
    });
    if (table.has("job"))
      golden.job = read_golden_job(table, folder);
    else
      table.attempt([&] {
        golden.file = fs::absolute(folder / table.string("result")).lexically_normal();
        if (!fs::is_regular_file(golden.file))
          table.refuse("result", "the recorded result is not there", "a file that `sealift-verify golden` wrote",
                       golden.file.string(),
                       "sealift-verify golden JOB.toml --out FILE, or job = \"JOB.toml\" for `lock` to run it");
      });
    table.done();
    if (!golden.job) golden.inputs = read_golden_result(golden.file, golden.name);
    goldens.push_back(std::move(golden));
  });
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
